import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const STEP = 64 * 1024;
const MOST_KEPT = 8 * 1024 * 1024;
/** Bodies of so many bytes leave garbage that is worth a collection of its own. */
const RUSH_BYTES = 32 * 1024 * 1024;
const QUIET_MILLISECONDS = 5_000;

/**
 * Memory of large bodies, used again. Bodies wait for their turn until the engine takes them for old, and would
 * take up memory long after: many of them a second make it look at everything it holds, again and again.
 */
export class BodyPool {
  readonly #kept = new Map<number, ArrayBuffer[]>();
  readonly #lent = new WeakSet<ArrayBufferLike>();
  #bytes = 0;

  /** So many bytes, of any content. */
  take(bytes: number): Buffer {
    const size = Math.ceil(bytes / STEP) * STEP;
    let memory = this.#kept.get(size)?.pop();
    if (memory) this.#bytes -= size;
    else memory = Buffer.allocUnsafeSlow(size).buffer as ArrayBuffer;
    this.#lent.add(memory);
    return Buffer.from(memory, 0, bytes);
  }

  /** Nobody reads this body any more. One that did not come from here is left alone. */
  give({ buffer }: Buffer): void {
    if (!this.#lent.delete(buffer) || this.#bytes + buffer.byteLength > MOST_KEPT) return;
    const size = buffer.byteLength;
    const kept = this.#kept.get(size);
    if (kept) kept.push(buffer as ArrayBuffer);
    else this.#kept.set(size, [buffer as ArrayBuffer]);
    this.#bytes += size;
  }

  clear(): void {
    this.#kept.clear();
    this.#bytes = 0;
  }
}

/** A collection of everything; the process need not have been started in a special way for it. */
function collector(): () => Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: object) => Promise<void>;
  return () => collect({ type: 'major', execution: 'async', flavor: 'last-resort' });
}

/**
 * Gives memory back to the system after a rush. The engine keeps what it once needed, for the next time, and looks at
 * it again only when more is wanted: a process that has nothing to do would stay as large as it ever was.
 */
export class MemoryAfterRush {
  readonly #collect: () => Promise<void>;
  readonly #before: (() => void) | undefined;
  readonly #timer: NodeJS.Timeout;
  #bytes = 0;
  #wasBusy = false;

  /** `before` lets go of what is kept for the next rush. */
  constructor(options: { quiet?: number; before?: () => void; collect?: () => Promise<void> } = {}) {
    this.#before = options.before;
    this.#collect = options.collect ?? collector();
    this.#timer = setInterval(() => this.#look(), options.quiet ?? QUIET_MILLISECONDS).unref();
  }

  /** A body of so many bytes came. */
  used(bytes: number): void {
    this.#bytes += bytes;
    this.#wasBusy = true;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const isQuiet = !this.#wasBusy;
    this.#wasBusy = false;
    if (!isQuiet || this.#bytes < RUSH_BYTES) return;
    this.#bytes = 0;
    this.#before?.();
    void this.#collect();
  }
}
