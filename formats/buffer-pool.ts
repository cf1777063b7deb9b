/** Keeps buffers of one size for reuse, since fresh memory costs more than filling it. */
export class BufferPool {
  readonly #size: number;
  /** How many free buffers are kept. */
  readonly #most: number;
  #free: Buffer[] = [];

  constructor(size: number, most = 8) {
    this.#size = size;
    this.#most = most;
  }

  /** Returns a buffer of this length with any content. */
  take(length: number): Buffer {
    // A small buffer is as cheap to allocate.
    if (length > this.#size || length < this.#size / 16) return Buffer.allocUnsafeSlow(length);
    const whole = this.#free.pop() ?? Buffer.allocUnsafeSlow(this.#size);
    return whole.subarray(0, length);
  }

  /** Gives back a buffer that nobody reads any more. */
  give(buffer: Buffer): void {
    const { buffer: memory } = buffer;
    if (memory.byteLength !== this.#size || this.#free.length === this.#most) return;
    this.#free.push(Buffer.from(memory as ArrayBuffer));
  }
}

/** Frees a buffer's memory now, without the garbage collector. Nobody may read the memory any more. */
export function freeMemory({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
