import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Sizes are rounded up to this, so that memory of one body fits the next. */
const STEP = 64 * 1024;
/** More free memory than this goes back to the engine. */
const MOST_KEPT = 8 * 1024 * 1024;
/** After so many bytes of bodies there is enough garbage to make a full collection worth its cost. */
const RUSH_BYTES = 32 * 1024 * 1024;
const QUIET_MILLISECONDS = 5_000;

/**
 * Memory of large bodies, used again. A body that waits for its turn lives long enough to become an old object for the
 * engine, which frees old objects only when it looks through all of them. Many such bodies a second would make it do so
 * again and again.
 */
export class BodyPool {
  readonly #kept = new Map<number, ArrayBuffer[]>();
  readonly #lent = new WeakSet<ArrayBufferLike>();
  #bytes = 0;

  /** Returns so many bytes, whose content is undefined. */
  take(bytes: number): Buffer {
    const size = Math.ceil(bytes / STEP) * STEP;
    let memory = this.#kept.get(size)?.pop();
    if (memory) this.#bytes -= size;
    else memory = Buffer.allocUnsafeSlow(size).buffer as ArrayBuffer;
    this.#lent.add(memory);
    return Buffer.from(memory, 0, bytes);
  }

  /** Takes a body back that nobody reads any more. A body that did not come from this pool is left alone. */
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

/** Returns the engine's full garbage collection. The process needs no special flag at its start. */
function collector(): () => Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: object) => Promise<void>;
  return () => collect({ type: 'major', execution: 'async', flavor: 'last-resort' });
}

/**
 * Gives memory back to the system after a rush. By itself the engine keeps the memory that it once needed, and collects
 * only when it needs more, so an idle process would stay as large as it ever was.
 */
export class MemoryAfterRush {
  readonly #collect: () => Promise<void>;
  readonly #before: (() => void) | undefined;
  readonly #timer: NodeJS.Timeout;
  #bytes = 0;
  #wasBusy = false;

  /** `before` is called before each collection, to let go of memory that is kept for the next rush. */
  constructor(options: { quiet?: number; before?: () => void; collect?: () => Promise<void> } = {}) {
    this.#before = options.before;
    this.#collect = options.collect ?? collector();
    this.#timer = setInterval(() => this.#look(), options.quiet ?? QUIET_MILLISECONDS).unref();
  }

  /** Counts the bytes of a body that has arrived. */
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
