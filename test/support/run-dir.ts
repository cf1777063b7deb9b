import { mkdtempSync, readdirSync, renameSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { tryLock } from '../../stack/file-lock.ts';
import { STATE_PREFIX } from './names.ts';

const LOCK = 'sluice.lock';

/**
 * The directory of a test run, which lives as long as this process. Nobody ever sees it without its lock: a run that
 * clears what killed runs left would take it for one of them.
 */
export function makeRunDir(parent = tmpdir()): string {
  const draft = mkdtempSync(path.join(parent, `new-${STATE_PREFIX}`));
  tryLock(path.join(draft, LOCK));
  const made = path.join(parent, path.basename(draft).slice('new-'.length));
  renameSync(draft, made);
  return made;
}

/** The directories of killed runs, locked for whoever asks: of several who clear at once each gets others. */
export function takeKilledRuns(parent = tmpdir()): string[] {
  return readdirSync(parent)
    .filter((name) => name.startsWith(STATE_PREFIX))
    .map((name) => path.join(parent, name))
    .filter((left) => {
      try {
        return tryLock(path.join(left, LOCK)).lock !== undefined;
      } catch (error) {
        // Somebody else has just removed it.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
        return false;
      }
    });
}
