import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Service } from '../process.ts';

/**
 * What SQLite says of a statement that was interrupted. When a time limit of Temporal ends a statement at the wrong moment, the
 * driver says it of all later ones too, until the process ends.
 */
export const INTERRUPTED = 'interrupted (9)';
/** How often the log is read, in milliseconds. */
const LOOK_EVERY = 5_000;
/** How long the fault has to last. */
const AGAIN_AFTER = 1_000;
const MOST_BYTES = 64 * 1024;

export interface DatabaseWatch {
  service: Pick<Service, 'exited' | 'stop'>;
  logFile: string;
  /** Asks Temporal for something that is in its database, and answers whether the fault is the reason that it cannot tell. */
  isInterrupted(): Promise<boolean>;
  report(line: string): void;
  lookEvery?: number;
}

/** Ends a Temporal that can no longer read its database, so that a new one begins. Costs nothing while the log is quiet. */
export function watchDatabase({
  service,
  logFile,
  isInterrupted,
  report,
  lookEvery = LOOK_EVERY,
}: DatabaseWatch): void {
  let read = sizeOf(logFile);
  const look = async () => {
    const size = sizeOf(logFile);
    const from = Math.max(size < read ? 0 : read, size - MOST_BYTES);
    read = size;
    if (!textOf(logFile, from, size).includes(INTERRUPTED)) return;
    if (!(await isInterrupted())) return;
    await pause(AGAIN_AFTER);
    if (!(await isInterrupted())) return;
    report('Temporal can no longer read its database: its SQLite stays interrupted. It has to start again.');
    await service.stop();
  };
  let isOver = false;
  let timer: NodeJS.Timeout;
  const next = () => {
    if (isOver) return;
    // A log that cannot be read now is read the next time.
    timer = setTimeout(
      () =>
        void look()
          .catch(() => undefined)
          .finally(next),
      lookEvery,
    ).unref();
  };
  next();
  void service.exited.then(() => {
    isOver = true;
    clearTimeout(timer);
  });
}

const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

function textOf(file: string, from: number, to: number): string {
  if (to <= from) return '';
  const bytes = Buffer.alloc(to - from);
  const log = openSync(file, 'r');
  try {
    return bytes.toString('latin1', 0, readSync(log, bytes, 0, bytes.length, from));
  } finally {
    closeSync(log);
  }
}
