import type { Queryable } from '../../db/pool.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { readGroups, readPersons, type WantedGroup, type WantedPerson } from '../rows/subjects.ts';

/** How many are read by one statement, and how many statements run at once. */
const MOST_TOGETHER = 200;
const AT_ONCE = 2;
/** How many requests may wait for a statement. */
const MOST_WAITING = 10_000;
/** So long a request waits for the database. */
const PATIENCE = 1_000;
/** After a failure nobody asks the database for so long. Then one asks, and the others wait for what becomes of it. */
const REST = 1_000;

/** The database did not answer. */
export class SubjectsUnavailableError extends Error {
  override name = 'SubjectsUnavailableError';
}

export type Properties = Readonly<Record<string, unknown>>;

/** Reads persons and groups for requests. */
export interface Subjects {
  /** The properties of the person of a distinct id, at least those that are named. Undefined: there is no person. */
  person(wanted: WantedPerson): Promise<Properties | undefined>;
  group(wanted: WantedGroup): Promise<Properties | undefined>;
  /** Asks the database something else, under the same breaker. */
  ask<T>(question: (queryable: Queryable) => Promise<T>): Promise<T>;
}

/** Fails at once while the database is known to be away, instead of making every request wait. */
class Breaker {
  readonly #now: () => number;
  readonly #patience: number;
  #closedUntil = 0;
  #probing = false;

  constructor(now: () => number, patience: number) {
    this.#now = now;
    this.#patience = patience;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    const isOpen = this.#closedUntil > 0;
    if (isOpen && (this.#probing || this.#now() < this.#closedUntil)) throw new SubjectsUnavailableError();
    this.#probing = isOpen;
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(new SubjectsUnavailableError()), this.#patience);
    try {
      const answer = await Promise.race([work(), late.promise]);
      this.#closedUntil = 0;
      return answer;
    } catch (error) {
      this.#closedUntil = this.#now() + REST;
      throw new SubjectsUnavailableError('The database did not answer.', { cause: error });
    } finally {
      clearTimeout(timer);
      if (isOpen) this.#probing = false;
    }
  }
}

interface Waiting<W> {
  wanted: W;
  resolve(properties: Properties | undefined): void;
  reject(error: Error): void;
}

/** Joins the questions of many requests to few statements. */
class Joined<W> {
  readonly #read: (wanted: readonly W[]) => Promise<(string | null)[]>;
  #waiting: Waiting<W>[] = [];
  #running = 0;
  #isPlanned = false;

  constructor(read: (wanted: readonly W[]) => Promise<(string | null)[]>) {
    this.#read = read;
  }

  ask(wanted: W): Promise<Properties | undefined> {
    if (this.#waiting.length >= MOST_WAITING) return Promise.reject(new SubjectsUnavailableError());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ wanted, resolve, reject });
      if (this.#isPlanned) return;
      this.#isPlanned = true;
      // Requests of the same turn of the event loop share a statement.
      setImmediate(() => {
        this.#isPlanned = false;
        this.#proceed();
      });
    });
  }

  #proceed(): void {
    while (this.#running < AT_ONCE && this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MOST_TOGETHER);
      this.#running += 1;
      void this.#answer(batch).finally(() => {
        this.#running -= 1;
        this.#proceed();
      });
    }
  }

  async #answer(batch: readonly Waiting<W>[]): Promise<void> {
    try {
      const texts = await this.#read(batch.map((one) => one.wanted));
      for (const [index, { resolve }] of batch.entries()) {
        const text = texts[index];
        resolve(typeof text === 'string' ? (parseExactJson(text) as Properties) : undefined);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error as Error);
    }
  }
}

export function createSubjects(
  queryable: Queryable,
  { now = Date.now, patience = PATIENCE }: { now?: () => number; patience?: number } = {},
): Subjects {
  const breaker = new Breaker(now, patience);
  const persons = new Joined<WantedPerson>((wanted) => breaker.run(() => readPersons(queryable, wanted)));
  const groups = new Joined<WantedGroup>((wanted) => breaker.run(() => readGroups(queryable, wanted)));
  return {
    person: (wanted) => persons.ask(wanted),
    group: (wanted) => groups.ask(wanted),
    ask: (question) => breaker.run(() => question(queryable)),
  };
}
