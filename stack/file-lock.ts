import { randomUUID } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { StackProblem } from './problem.ts';
import { isRunning, processStart } from './process.ts';

interface Owner {
  pid: number;
  /** From processStart(), since another program may have got the same process number later. */
  started: string;
  /** Differs each time the lock is taken. */
  token: string;
}

export interface FileLock {
  release(): void;
}

interface LockAttempt {
  lock?: FileLock;
  /** The process number of the running owner, if the lock was not taken. */
  heldBy?: number;
}

function readOwner(file: string): Owner | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Creates the file with its content in one step. Returns false if it exists. */
function createExclusively(file: string, content: string): boolean {
  const draft = `${file}.${randomUUID()}`;
  writeFileSync(draft, content, { mode: 0o600 });
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Takes a lock that ends with its owner. The file names a process and when it began. If that process is gone, another
 * one may take the lock over. A second lock protects the take-over, so that two processes cannot both do it. That lock
 * is held for microseconds. If its owner was killed just then, it is taken over in the same way.
 */
export function tryLock(file: string, depth = 0): LockAttempt {
  const mine: Owner = {
    pid: process.pid,
    started: processStart(process.pid) as string,
    token: randomUUID(),
  };
  const content = JSON.stringify(mine);
  const lock: FileLock = {
    release() {
      if (readOwner(file)?.token === mine.token) rmSync(file, { force: true });
    },
  };
  if (createExclusively(file, content)) return { lock };
  const owner = readOwner(file);
  if (owner && isRunning(owner.pid, owner.started)) return { heldBy: owner.pid };
  if (depth > 3) throw new Error(`The lock ${file} cannot be taken over; remove it and its companions.`);
  const takeover = tryLock(`${file}.takeover`, depth + 1);
  if (!takeover.lock) return { heldBy: takeover.heldBy as number };
  try {
    const now = readOwner(file);
    // Another process took over or released the lock between the two reads.
    if (now?.token !== owner?.token) return now ? { heldBy: now.pid } : tryLock(file, depth);
    writeFileSync(`${file}.${mine.token}`, content, { mode: 0o600 });
    renameSync(`${file}.${mine.token}`, file);
    return { lock };
  } finally {
    takeover.lock.release();
  }
}

/** Locks the data directory for this `npm start`. If another one runs, throws a StackProblem that names its process. */
export function lockInstance(dataDir: string): FileLock {
  mkdirSync(dataDir, { recursive: true });
  const { lock, heldBy } = tryLock(path.join(dataDir, 'sluice.lock'));
  if (lock) return lock;
  throw new StackProblem(`Sluice is already running with this data directory (process ${heldBy}).`);
}
