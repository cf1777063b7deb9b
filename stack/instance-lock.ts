import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { type FileLock, tryLock } from './file-lock.ts';
import { StackProblem } from './problem.ts';

/** Locks the data directory for this process. Throws a StackProblem with the number of the process that holds the lock. */
export function lockInstance(dataDir: string): FileLock {
  mkdirSync(dataDir, { recursive: true });
  const { lock, heldBy } = tryLock(path.join(dataDir, 'sluice.lock'));
  if (lock) return lock;
  throw new StackProblem(`Sluice is already running with this data directory (process ${heldBy}).`);
}
