import { isDatabaseUnavailable } from '../../db/pool.ts';
import { ApiError } from '../errors.ts';

/** Milliseconds that the database has for an answer, where an earlier one would do. */
const PATIENCE = 1_000;
/** After that nobody waits for it. It is asked so often whether it is back. */
const REST = 1_000;

/** Whether the database is away, or not ready for this process yet. */
export const isUnavailable = (error: unknown): boolean =>
  isDatabaseUnavailable(error) || (error instanceof ApiError && error.status === 503);

/** The database did not answer in time. */
export const LATE = Symbol('late');

/** Bounds how long requests wait for the database where an earlier answer would do. While it is away, none waits. */
export class Patience {
  readonly #now: () => number;
  readonly #milliseconds: number;
  #isAway = false;
  #askAgainAt = 0;

  constructor(now: () => number = Date.now, milliseconds = PATIENCE) {
    this.#now = now;
    this.#milliseconds = milliseconds;
  }

  /** The database has answered. */
  answered(): void {
    this.#isAway = false;
  }

  /** The database did not answer. */
  failed(): void {
    this.#isAway = true;
    this.#askAgainAt = this.#now() + REST;
  }

  /** The answer of the database if it comes in time. Throws what is not the fault of its being away. */
  async wait<T>(answer: Promise<T>): Promise<T | typeof LATE> {
    const late = Promise.withResolvers<typeof LATE>();
    const timer = setTimeout(
      () => {
        this.failed();
        late.resolve(LATE);
      },
      this.#isAway ? 0 : this.#milliseconds,
    );
    try {
      return await Promise.race([answer, late.promise]);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      this.failed();
      return LATE;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The answer of the database if it comes in time, else the earlier one. */
  prefer<T>(ask: () => Promise<T>, earlier: T): T | Promise<T> {
    if (!this.#isAway) return this.wait(ask()).then((answer) => (answer === LATE ? earlier : answer));
    if (this.#now() >= this.#askAgainAt) {
      this.#askAgainAt = this.#now() + REST;
      ask().catch(() => undefined);
    }
    return earlier;
  }
}
