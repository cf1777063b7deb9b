import type { Counter } from 'prom-client';

/** A number of one counter that grows with every request: added up here, told to the counter when it is read. */
export class Tally {
  #waiting = 0;

  add(count: number): void {
    this.#waiting += count;
  }

  /** For the `collect` of the counter. */
  tell<T extends string>(counter: Counter<T>, labels: Partial<Record<T, string>>): void {
    counter.inc(labels, this.#waiting);
    this.#waiting = 0;
  }
}
