import { closeSync, openSync, readlinkSync, readSync } from 'node:fs';

/** More than the line of numbers has. */
const LINE = 128;

/** What the system calls the thread that asks, or null where it does not say. */
export function ownThread(): string | null {
  try {
    // Such as `1234/task/1240`.
    return readlinkSync('/proc/thread-self');
  } catch {
    return null;
  }
}

/** Tells how long a thread has computed. On a busy machine that is much less than the time that has passed. */
export class ProcessorTime {
  readonly #file: number;
  readonly #line = Buffer.alloc(LINE);

  private constructor(file: number) {
    this.#file = file;
  }

  /** Returns null where the system does not tell. */
  static of(thread: string | null): ProcessorTime | null {
    if (thread === null) return null;
    try {
      const time = new ProcessorTime(openSync(`/proc/${thread}/schedstat`, 'r'));
      return time.milliseconds() === null ? null : time;
    } catch {
      return null;
    }
  }

  /** Milliseconds of processor time since the thread began, or null if it has ended. */
  milliseconds(): number | null {
    try {
      // Nanoseconds on a processor, nanoseconds of waiting for one, and the number of turns.
      const length = readSync(this.#file, this.#line, 0, LINE, 0);
      const nanoseconds = Number(this.#line.toString('latin1', 0, length).split(' ', 1)[0]);
      return nanoseconds > 0 ? nanoseconds / 1e6 : null;
    } catch {
      return null;
    }
  }

  close(): void {
    closeSync(this.#file);
  }
}
