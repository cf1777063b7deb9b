const CUT = '... (truncated)';

/** How much of what functions make is shown to people. What no longer fits is cut, or left out. */
export class Room {
  #left: number;

  /** `characters` are those of all that is shown together. */
  constructor(characters: number) {
    this.#left = characters;
  }

  text(text: string): string {
    if (text.length <= this.#left) {
      this.#left -= text.length;
      return text;
    }
    const head = text.slice(0, this.#left);
    this.#left = 0;
    return (head.isWellFormed() ? head : head.slice(0, -1)) + CUT;
  }

  /** Returns a value, or the mark of what was left out. */
  value(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    const left = leftAfter(value, this.#left);
    if (left < 0) return CUT;
    this.#left = left;
    return value;
  }
}

/** What would be left after a value. It stops to count at the first one that does not fit. */
function leftAfter(value: unknown, left: number): number {
  if (typeof value === 'string') return left - value.length;
  if (typeof value !== 'object' || value === null) return left - 1;
  let rest = left;
  for (const [key, one] of Object.entries(value)) {
    rest = leftAfter(one, rest - (Array.isArray(value) ? 1 : key.length));
    if (rest < 0) break;
  }
  return rest;
}
