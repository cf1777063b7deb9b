import { isOfClass } from '../../db/error-class.ts';
import type { Queryable } from '../../db/pool.ts';
import { Turns } from '../../db/turns.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { readGroups, readPersons, type WantedGroup, type WantedPerson } from '../rows/subjects.ts';

/** How many are read by one statement. */
const MOST_TOGETHER = 200;
/** How many statements run at once, and how many of them for one project. Others of the pool's connections stay free. */
const AT_ONCE = 3;
const PER_PROJECT = 2;
/** How many requests of a project may wait for a statement. */
const MOST_WAITING = 5_000;
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
  /** Asks the database something else about a project, with the same share and breaker. */
  ask<T>(projectId: number, question: (queryable: Queryable) => Promise<T>): Promise<T>;
}

/** Whether the fault lies in a value that was asked for, and not in the database. */
const isBadValue = (error: unknown): boolean => isOfClass(error, ['22']);

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

  get isOpen(): boolean {
    return this.#closedUntil > 0;
  }

  /** Does the work, and tells `ended` before anybody learns what became of it. */
  run<T>(work: () => Promise<T>, ended: () => void): Promise<T> {
    const isOpen = this.#closedUntil > 0;
    if (isOpen && (this.#probing || this.#now() < this.#closedUntil)) {
      ended();
      return Promise.reject(new SubjectsUnavailableError());
    }
    this.#probing = isOpen;
    // Every request for a stored person comes here, so there is one promise and not a race of several.
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (): boolean => {
        if (isOver) return false;
        isOver = true;
        clearTimeout(timer);
        if (isOpen) this.#probing = false;
        return true;
      };
      const fail = (error: unknown) => {
        if (!end()) return;
        if (!isBadValue(error)) this.#closedUntil = this.#now() + REST;
        ended();
        reject(new SubjectsUnavailableError('The database did not answer.', { cause: error }));
      };
      const timer = setTimeout(() => fail(new SubjectsUnavailableError()), this.#patience);
      work().then((answer) => {
        if (!end()) return;
        this.#closedUntil = 0;
        ended();
        resolve(answer);
      }, fail);
    });
  }
}

/** The breakers of projects: what one project asks for may be slow while others are answered. */
class Breakers {
  readonly #now: () => number;
  readonly #patience: number;
  readonly #breakers = new Map<number, { breaker: Breaker; users: number }>();

  constructor(now: () => number, patience: number) {
    this.#now = now;
    this.#patience = patience;
  }

  run<T>(projectId: number, work: () => Promise<T>): Promise<T> {
    const one = this.#breakers.get(projectId) ?? {
      breaker: new Breaker(this.#now, this.#patience),
      users: 0,
    };
    if (one.users === 0) this.#breakers.set(projectId, one);
    one.users += 1;
    return one.breaker.run(work, () => {
      one.users -= 1;
      if (one.users === 0 && !one.breaker.isOpen) this.#breakers.delete(projectId);
    });
  }
}

interface Waiting<W> {
  wanted: W;
  resolve(properties: Properties | undefined): void;
  reject(error: Error): void;
}

/** The questions of one project, and whether somebody answers them. */
interface Queue<W> {
  list: Waiting<W>[];
  isServed: boolean;
}

/**
 * Joins the questions of a project's requests. One statement of a project runs at a time, and what comes meanwhile joins the
 * next one: the busier a project is, the less a question costs.
 */
class Joined<W extends { projectId: number }> {
  readonly #read: (wanted: readonly W[]) => Promise<(string | null)[]>;
  readonly #turns: Turns;
  readonly #waiting = new Map<number, Queue<W>>();

  constructor(turns: Turns, read: (wanted: readonly W[]) => Promise<(string | null)[]>) {
    this.#turns = turns;
    this.#read = read;
  }

  ask(wanted: W): Promise<Properties | undefined> {
    const { projectId } = wanted;
    const own = this.#waiting.get(projectId) ?? { list: [], isServed: false };
    this.#waiting.set(projectId, own);
    if (own.list.length >= MOST_WAITING) return Promise.reject(new SubjectsUnavailableError());
    return new Promise((resolve, reject) => {
      own.list.push({ wanted, resolve, reject });
      if (own.isServed) return;
      own.isServed = true;
      // Requests of the same turn of the event loop share a statement.
      setImmediate(() => void this.#proceed(projectId, own));
    });
  }

  async #proceed(projectId: number, own: Queue<W>): Promise<void> {
    while (own.list.length > 0) {
      let batch: Waiting<W>[] = [];
      try {
        // What comes until it is the project's turn joins the statement.
        await this.#turns.take({ projectId }, async () => {
          batch = own.list.splice(0, MOST_TOGETHER);
          if (batch.length > 0) await this.#answer(batch);
        });
      } catch (error) {
        for (const { reject } of batch.length > 0 ? batch : own.list.splice(0)) reject(error as Error);
      }
    }
    this.#waiting.delete(projectId);
  }

  async #answer(batch: readonly Waiting<W>[]): Promise<void> {
    const texts = await this.#read(batch.map((one) => one.wanted));
    for (const [index, { resolve }] of batch.entries()) {
      const text = texts[index];
      resolve(typeof text === 'string' ? (parseExactJson(text) as Properties) : undefined);
    }
  }
}

export function createSubjects(
  queryable: Queryable,
  { now = Date.now, patience = PATIENCE }: { now?: () => number; patience?: number } = {},
): Subjects {
  const breakers = new Breakers(now, patience);
  // A turn lasts as long as its statement, also if nobody waits for it any more.
  const turns = new Turns({ atOnce: AT_ONCE, perAsker: PER_PROJECT, waitingPerAsker: MOST_WAITING });
  const persons = new Joined<WantedPerson>(turns, (wanted) => readPersons(queryable, wanted));
  const groups = new Joined<WantedGroup>(turns, (wanted) => readGroups(queryable, wanted));
  return {
    person: (wanted) => breakers.run(wanted.projectId, () => persons.ask(wanted)),
    group: (wanted) => breakers.run(wanted.projectId, () => groups.ask(wanted)),
    ask: (projectId, question) =>
      breakers.run(projectId, () => turns.take({ projectId }, () => question(queryable))),
  };
}
