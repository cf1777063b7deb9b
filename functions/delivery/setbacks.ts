import { LRUCache } from 'lru-cache';
import { AFTER_ERROR } from './outcomes.ts';

/** Milliseconds. */
const LONGEST = 300_000;
const MOST = 10_000;

/** How often things could not be had, one time after the other, and when each is worth another try. */
export class Setbacks {
  readonly #counts = new LRUCache<string, number>({ max: MOST });

  /** It could not be had, once more. */
  add(key: string): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  /** It was had. */
  clear(key: string): void {
    this.#counts.delete(key);
  }

  /** In how many milliseconds it is tried again. */
  after(key: string): number {
    const doubled = AFTER_ERROR * 2 ** ((this.#counts.get(key) ?? 1) - 1);
    return Math.min(LONGEST, doubled) * (1 + Math.random() / 10);
  }
}
