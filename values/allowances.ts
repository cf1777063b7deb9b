import { LRUCache } from 'lru-cache';

/**
 * Bounds how often something happens for each of many. Each may have so much of it at once, and gets as much back in a
 * minute. What was counted is forgotten with time, and for the oldest first when there are too many to remember.
 */
export class Allowances {
  readonly #perMinute: number;
  readonly #used: LRUCache<string, { amount: number; at: number }>;

  /** `perMinute` 0: no bound. */
  constructor(perMinute: number, most = 10_000) {
    this.#perMinute = perMinute;
    this.#used = new LRUCache({ max: most });
  }

  /** How many are remembered. */
  get size(): number {
    return this.#used.size;
  }

  /** Returns the whole seconds until it may happen again for `who`; 0 if it may happen now. */
  wait(who: string, now: number): number {
    const over = this.#usedBy(who, now) - this.#perMinute;
    return this.#perMinute === 0 || over <= -1
      ? 0
      : Math.max(1, Math.ceil(((over + 1) / this.#perMinute) * 60));
  }

  /** Counts that it happened once for `who`. */
  count(who: string, now: number): void {
    if (this.#perMinute === 0) return;
    const amount = this.#usedBy(who, now) + 1;
    this.#used.set(who, { amount, at: now });
  }

  #usedBy(who: string, now: number): number {
    const used = this.#used.peek(who);
    return used ? Math.max(0, used.amount - ((now - used.at) / 60_000) * this.#perMinute) : 0;
  }
}
