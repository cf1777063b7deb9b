/** The key under which masking counts. Null: the event is not masked. */
export type MaskKey = { key: string | null; error?: string };

/** How often invocations of one key are let through. */
export interface MaskingRule {
  /** Seconds. A window begins with the first invocation of a key, and invocations in it do not make it longer. */
  ttl: number;
  /** Lets the first of every so many through. Null: the first of a window only. */
  threshold?: number | null | undefined;
}

/** The longest window in seconds. */
export const LONGEST_WINDOW = 86_400;

/** Answers whether a window lets an invocation through after `before` others. */
export const letThrough = (before: number, threshold: number | null | undefined): boolean =>
  threshold ? before % threshold === 0 : before === 0;

/** What comes under a masking: the invocations that one event leads to. */
export interface Maskable {
  key: string;
  /** Milliseconds. */
  time: number;
  invocations: number;
}

/** Decides what masking lets through. Events come in the order of their time. */
export class Masking {
  readonly #rule: MaskingRule;
  readonly #windows: Map<string, { ends: number; count: number }>;

  /** `windows`: those that are open already, which this one changes. */
  constructor(rule: MaskingRule, windows = new Map<string, { ends: number; count: number }>()) {
    this.#rule = rule;
    this.#windows = windows;
  }

  /** Returns how many invocations of an event go through. */
  pass({ key, time, invocations }: Maskable): number {
    const { ttl, threshold } = this.#rule;
    let window = this.#windows.get(key);
    if (!window || time >= window.ends) {
      window = { ends: time + ttl * 1_000, count: 0 };
      this.#windows.set(key, window);
    }
    let passed = 0;
    for (let one = 0; one < invocations; one += 1) {
      if (letThrough(window.count, threshold)) passed += 1;
      window.count += 1;
    }
    return passed;
  }
}
