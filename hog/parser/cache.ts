/**
 * A cache with a limited number of entries and a limited total key length. It evicts the least recently used entries.
 */
export class Cache<T> {
  readonly #entries = new Map<string, T>();
  readonly #maxEntries: number;
  readonly #maxKeyLength: number;
  #keyLength = 0;

  constructor(maxEntries: number, maxKeyLength: number) {
    this.#maxEntries = maxEntries;
    this.#maxKeyLength = maxKeyLength;
  }

  get(key: string): T | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, value);
    }
    return value;
  }

  set(key: string, value: T): void {
    if (key.length > this.#maxKeyLength || this.#maxEntries === 0) return;
    if (this.#entries.delete(key)) this.#keyLength -= key.length;
    this.#entries.set(key, value);
    this.#keyLength += key.length;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries && this.#keyLength <= this.#maxKeyLength) break;
      this.#entries.delete(oldest);
      this.#keyLength -= oldest.length;
    }
  }

  get size(): number {
    return this.#entries.size;
  }
}
