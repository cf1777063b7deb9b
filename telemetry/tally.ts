import type { Counter } from 'prom-client';

/** Adds up one number of a counter, and passes the sum to the counter when somebody reads it. Cheaper for every request. */
export class Tally {
  #waiting = 0;

  add(count: number): void {
    this.#waiting += count;
  }

  /** Passes the sum to the counter. The counter's `collect` calls it. */
  tell<T extends string>(counter: Counter<T>, labels: Partial<Record<T, string>>): void {
    counter.inc(labels, this.#waiting);
    this.#waiting = 0;
  }
}
