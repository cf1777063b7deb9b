/** Buffers of one size, used again: fresh memory costs more than filling it. */
export class BufferPool {
  readonly #size: number;
  /** So many are kept for another time. */
  readonly #most: number;
  #free: Buffer[] = [];

  constructor(size: number, most = 8) {
    this.#size = size;
    this.#most = most;
  }

  /** A buffer of this length with anything in it. */
  take(length: number): Buffer {
    // For a small one, memory of its own is no more work.
    if (length > this.#size || length < this.#size / 16) return Buffer.allocUnsafeSlow(length);
    const whole = this.#free.pop() ?? Buffer.allocUnsafeSlow(this.#size);
    return whole.subarray(0, length);
  }

  /** Gives back one that was taken, when nobody reads it any more. */
  give(buffer: Buffer): void {
    const { buffer: memory } = buffer;
    if (memory.byteLength !== this.#size || this.#free.length === this.#most) return;
    this.#free.push(Buffer.from(memory as ArrayBuffer));
  }
}

/** Gives a buffer's memory back at once, not at the garbage collector's leisure. Nobody may read any of it any more. */
export function freeMemory({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
