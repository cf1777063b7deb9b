/** Answers that were given lately, at most `size` of them: who has not been asked for longest goes first. */
export class Recent<Value> {
  readonly #size: number;
  /** Maps keep the order in which their entries came. */
  readonly #entries = new Map<string, Value>();

  constructor(size: number) {
    this.#size = size;
  }

  get(key: string): Value | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    if (this.#entries.size >= this.#size) this.#entries.delete(this.#entries.keys().next().value as string);
    this.#entries.set(key, value);
  }

  clear(): void {
    this.#entries.clear();
  }
}
