import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isRunning, processStart } from './process.ts';

interface Owner {
  pid: number;
  /** From processStart(). The process number alone does not identify the owner: another program may have it by now. */
  started: string;
  /** Different for every acquisition. */
  token: string;
}

export interface FileLock {
  release(): void;
}

export interface LockAttempt {
  lock?: FileLock;
  /** Process number of the owner, if another process holds the lock. */
  heldBy?: number;
}

function readOwner(file: string): Owner | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Creates the file with its content in one step. Returns false if the file exists. */
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
 * Tries to take a lock that ends with its owner. The file names a process and its start time; a process that finds
 * the owner gone takes over. Two processes that find the same dead owner must not both take over, so the takeover
 * needs a lock of its own. A process holds that lock for microseconds. If it is killed in that time, the same rule
 * applies to the takeover lock.
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
