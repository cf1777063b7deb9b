const STEP = 64 * 1024;
const MOST_KEPT = 8 * 1024 * 1024;

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
