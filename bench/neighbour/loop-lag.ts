import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

/** How late the event loop of a process was, in milliseconds. See watch-loop.ts. */
export interface Lateness {
  clock: number;
  /** The CPU time of the main thread in one go. Other processes do not add to it. */
  cpu: number;
  /** Seconds in which it was late by more than 100 ms by the clock. */
  lateSeconds: number;
}

interface Line {
  at: number;
  clock: number;
  cpu: number;
}

/** The watcher writes once a second. */
const WRITTEN_AFTER = 1_500;

/** Begins to watch what watch-loop.ts writes into a file. */
export function watchLoop(file: string) {
  const begin = Date.now();
  return {
    async end(): Promise<Lateness> {
      const end = Date.now();
      await pause(WRITTEN_AFTER);
      const text = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
      const lines = text === '' ? [] : text.split('\n').map((line) => JSON.parse(line) as Line);
      const within = lines.filter(({ at }) => at >= begin && at <= end + WRITTEN_AFTER);
      return {
        clock: Math.max(0, ...within.map(({ clock }) => clock)),
        cpu: Math.max(0, ...within.map(({ cpu }) => cpu)),
        lateSeconds: within.filter(({ clock }) => clock > 100).length,
      };
    },
  };
}
