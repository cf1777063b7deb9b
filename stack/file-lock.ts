import { randomUUID } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { StackProblem } from './problem.ts';
import { isRunning, processStart } from './process.ts';

interface Owner {
  pid: number;
  /** From processStart(): a process number alone may have been given to another program since. */
  started: string;
  /** Differs for every acquisition. */
  token: string;
}

export interface FileLock {
  release(): void;
}

interface LockAttempt {
  lock?: FileLock;
  /** Process number of the living owner, if the lock was not had. */
  heldBy?: number;
}

function readOwner(file: string): Owner | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Creates the file with its content in one step; false when it exists. */
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
 * A lock that dies with its owner: the file names a process and when it began, and whoever finds that process gone
 * takes over. Two that find the same dead owner must not both take over, so that taking over has a lock itself;
 * that one is held for microseconds, and the same is done again should its owner have been killed just then.
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
    // Somebody else took over, or released, between the two looks.
    if (now?.token !== owner?.token) return now ? { heldBy: now.pid } : tryLock(file, depth);
    writeFileSync(`${file}.${mine.token}`, content, { mode: 0o600 });
    renameSync(`${file}.${mine.token}`, file);
    return { lock };
  } finally {
    takeover.lock.release();
  }
}

/** Makes this process the only `npm start` of the data directory, or names the one that is. */
export function lockInstance(dataDir: string): FileLock {
  mkdirSync(dataDir, { recursive: true });
  const { lock, heldBy } = tryLock(path.join(dataDir, 'sluice.lock'));
  if (lock) return lock;
  throw new StackProblem(`Sluice is already running with this data directory (process ${heldBy}).`);
}
