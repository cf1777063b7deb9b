import { LRUCache } from 'lru-cache';
import type { Queryable } from '../../db/pool.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { sievedFunctions } from '../rows/reacting.ts';
import type { Glance } from './exclusion.ts';
import { type Look, Sieve } from './sieve.ts';

const MOST_PROJECTS = 1_000;
/** The functions of a project are read again after so many milliseconds at the earliest, however often they change. */
const EVERY = 500;

interface Known {
  sieve: Sieve | undefined;
  /** When its functions were read. */
  readAt: number;
}

/**
 * The sieves of projects, in the memory of a process that captures. They only save work: a transaction learns the version of
 * the functions that it sees, and uses what a sieve of the same version has found out.
 */
export class Sieves {
  readonly #pool: Queryable;
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #known = new LRUCache<number, Known>({ max: MOST_PROJECTS });

  constructor(pool: Queryable, logger: Pick<Logger, 'warn'>) {
    this.#pool = pool;
    this.#logger = logger;
  }

  look(projectId: number, event: Glance): Look | undefined {
    return this.#known.get(projectId)?.sieve?.look(event);
  }

  /** Transactions see these versions of projects. Those that are not known are read soon. */
  expect(versions: ReadonlyMap<number, number>): void {
    for (const [projectId, version] of versions) {
      const known = this.#known.get(projectId);
      if (known?.sieve?.version === version) continue;
      const now = performance.now();
      if (known && now - known.readAt < EVERY) continue;
      const next: Known = { sieve: known?.sieve, readAt: now };
      this.#known.set(projectId, next);
      // What is read is of this version or of a later one. A later one comes with another transaction's answer.
      sievedFunctions(this.#pool, projectId)
        .then((rows) => Sieve.of(projectId, version, rows))
        .then(
          (sieve) => {
            if (this.#known.get(projectId) === next) next.sieve = sieve;
          },
          (error: unknown) =>
            this.#logger.warn({ err: error, projectId }, 'functions of a project could not be read'),
        );
    }
  }
}
