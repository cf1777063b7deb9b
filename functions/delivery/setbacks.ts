import { LRUCache } from 'lru-cache';
import { AFTER_ERROR, type Setback } from './outcomes.ts';

/** Milliseconds. */
const LONGEST = 300_000;
/** Of more things it is not known. As many invocations of a function wait in the queue. */
const MOST = 100_000;

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

  /** How it stands with something that could not be had. */
  of(key: string): Setback {
    const times = this.#counts.get(key) ?? 1;
    const doubled = AFTER_ERROR * 2 ** (times - 1);
    return { times, after: Math.min(LONGEST, doubled) * (1 + Math.random() / 10) };
  }
}
