/** Keeps the values that were put last, up to a total size. The last one is kept in any case. */
export class Kept<Key, Value> {
  readonly #most: number;
  readonly #entries = new Map<Key, { value: Value; size: number }>();
  #size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key)?.value;
  }

  put(key: Key, value: Value, size: number): void {
    this.delete(key);
    this.#entries.set(key, { value, size });
    this.#size += size;
    for (const oldest of this.#entries.keys()) {
      if (this.#size <= this.#most || oldest === key) return;
      this.delete(oldest);
    }
  }

  delete(key: Key): void {
    const known = this.#entries.get(key);
    if (!known) return;
    this.#entries.delete(key);
    this.#size -= known.size;
  }
}
