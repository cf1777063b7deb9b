// A file on its way to a store that takes it in parts, in any order, and joins them at the end.
import type { DestinationError } from './errors.ts';

const MEBIBYTE = 1024 * 1024;
const SMALL_PART = 8 * MEBIBYTE;
const LARGE_PART = 64 * MEBIBYTE;
const SMALL_PARTS = 5_000;
/** So many bytes of one file may be under way at the same time. */
export const IN_FLIGHT_BYTES = 32 * MEBIBYTE;

/**
 * The size of a part. Up to 39 GiB, all parts of a file have the same size, as some servers require. A longer file goes
 * on in larger parts, so that 10,000 parts can hold 351 GiB.
 */
export function partSize(index: number): number {
  return index < SMALL_PARTS ? SMALL_PART : LARGE_PART;
}

/** Keeps the memory of sent parts for the next ones. */
export class PartBuffers {
  readonly #free: Buffer[] = [];

  take(size: number): Buffer {
    const at = this.#free.findIndex((one) => one.length === size);
    return at < 0 ? Buffer.allocUnsafeSlow(size) : (this.#free.splice(at, 1)[0] as Buffer);
  }

  give(buffer: Buffer): void {
    if (buffer.length === SMALL_PART && this.#free.length < IN_FLIGHT_BYTES / SMALL_PART + 1)
      this.#free.push(buffer);
  }

  clear(): void {
    this.#free.length = 0;
  }
}

interface PartsOptions {
  buffers: PartBuffers;
  signal?: AbortSignal | undefined;
  /** How many parts the store takes. */
  most: number;
  /** The error of a file that needs more. */
  tooLarge(): DestinationError;
  /** Sends a part, numbered from 1. After `signal` no request begins; at `cut` those under way end. */
  send(number: number, bytes: Buffer, control: { signal: AbortSignal; cut: AbortSignal }): Promise<void>;
}

/** Cuts a file into parts. A part is sent while the next one fills, and the memory for both has a bound. */
export class Parts {
  readonly #options: PartsOptions;
  /** When it aborts, no further request begins. */
  readonly #quit = new AbortController();
  /** When it aborts, requests under way are cut off. */
  readonly #cut = new AbortController();
  readonly signal: AbortSignal;
  readonly #sending = new Map<Promise<void>, number>();
  #buffer: Buffer | undefined;
  #used = 0;
  #next = 0;
  #failure: Error | undefined;

  constructor(options: PartsOptions) {
    this.#options = options;
    this.signal = options.signal ? AbortSignal.any([options.signal, this.#quit.signal]) : this.#quit.signal;
  }

  /** Copies the chunk, so that the caller can use its memory again. Waits only while enough bytes are under way. */
  write(chunk: Buffer): void | Promise<void> {
    if (this.#failure) throw this.#failure;
    const rest = this.#fill(chunk, 0);
    return rest === chunk.length ? undefined : this.#writeRest(chunk, rest);
  }

  async #writeRest(chunk: Buffer, from: number): Promise<void> {
    for (let at = from; at < chunk.length; at = this.#fill(chunk, at)) {
      await this.#room();
      this.#send();
    }
  }

  #fill(chunk: Buffer, from: number): number {
    if (from === chunk.length) return from;
    this.#buffer ??= this.#options.buffers.take(partSize(this.#next));
    const copied = chunk.copy(this.#buffer, this.#used, from);
    this.#used += copied;
    return from + copied;
  }

  async #room(): Promise<void> {
    const sent = () => [...this.#sending.values()].reduce((sum, bytes) => sum + bytes, 0);
    const { promise: quit, resolve } = Promise.withResolvers<void>();
    const onQuit = () => resolve();
    this.signal.addEventListener('abort', onQuit);
    try {
      while (this.#sending.size > 0 && sent() + this.#used > IN_FLIGHT_BYTES && !this.signal.aborted)
        await Promise.race([...this.#sending.keys(), quit]);
    } finally {
      this.signal.removeEventListener('abort', onQuit);
    }
    if (this.#failure) throw this.#failure;
    this.signal.throwIfAborted();
  }

  /** Begins to send the full part. */
  #send(): void {
    const { buffers, most, tooLarge, send } = this.#options;
    const buffer = this.#buffer ?? Buffer.alloc(0);
    const bytes = buffer.subarray(0, this.#used);
    const number = this.#next + 1;
    if (number > most) {
      this.#failure = tooLarge();
      throw this.#failure;
    }
    this.#next = number;
    this.#buffer = undefined;
    this.#used = 0;
    const sending = send(number, bytes, { signal: this.signal, cut: this.#cut.signal })
      .catch((error) => {
        this.#failure ??= error as Error;
        this.#quit.abort(error);
      })
      .finally(() => {
        this.#sending.delete(sending);
        buffers.give(buffer);
      });
    this.#sending.set(sending, bytes.length);
  }

  /** The whole file, if it was too short for a part, for one request. Otherwise undefined: `finish` sends the rest. */
  takeWhole(): Buffer | undefined {
    if (this.#failure) throw this.#failure;
    if (this.#next > 0) return undefined;
    const whole = Buffer.from(this.#buffer?.subarray(0, this.#used) ?? []);
    if (this.#buffer) this.#options.buffers.give(this.#buffer);
    this.#buffer = undefined;
    return whole;
  }

  /** Sends the rest, and waits for all parts. An empty file has one part, which is empty. */
  async finish(): Promise<void> {
    if (this.#failure) throw this.#failure;
    if (this.#used > 0 || this.#next === 0) {
      await this.#room();
      this.#send();
    }
    await Promise.all(this.#sending.keys());
    if (this.#failure) throw this.#failure;
  }

  /**
   * Gives the file up. A part that arrives later may be stored for ever, so parts under way get `grace` milliseconds to
   * arrive first; then `onLate` is called, and they are cut off.
   */
  async abort(grace: number, onLate: () => void = () => undefined): Promise<void> {
    const reason = new Error('the file was given up');
    this.#quit.abort(reason);
    this.#failure ??= reason;
    const timer = setTimeout(() => {
      onLate();
      this.#cut.abort(reason);
    }, grace);
    await Promise.all(this.#sending.keys());
    clearTimeout(timer);
    this.#buffer = undefined;
  }
}
