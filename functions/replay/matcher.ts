import { copyOut } from '../../db/copy-out.ts';
import type { Pool } from '../../db/pool.ts';
import { Turns } from '../../db/turns.ts';
import { ThreadError, ThreadPool } from '../../hog/threads/pool.ts';
import { besideOf, type Known } from '../dispatch/definitions.ts';
import { keysOf, RowPieces } from '../dispatch/event-rows.ts';
import type { FilterError, MatchEventsJob, MatchedEvent, MatchedEvents } from '../dispatch/match.ts';
import { type EventKey, eventsByKeySql } from '../rows/events.ts';
import type { MatchedPerson, MatchPersonsJob } from './match-persons.ts';

/** About how many bytes of rows a thread gets at once. */
const PIECE = 512 * 1024;
/** How long filters may take for a piece before the rest is left for the next page, in milliseconds. */
const LIMIT = 1_000;
/** How long a thread may take for a piece. Steps of filters are limited, so only a broken thread takes so long. */
const THREAD_LIMIT = 30_000;
/** How many pages are matched at once, each with a connection. One project has at most one of them. */
const AT_ONCE = 2;

/** For which events of a page a function runs. */
export interface MatchedPage {
  matched: MatchedEvent[];
  /** All errors of the filters. */
  errors: FilterError[];
  /** Events that there was no time for, by uuid. */
  left: Set<string>;
}

/** Finds out for which of many stored events, or persons, a function runs, with the same code as for new ones. */
export class ReplayMatcher {
  readonly #pool: Pool;
  readonly #threads = new ThreadPool<MatchEventsJob, MatchedEvents>({
    entry: new URL('../dispatch/match-thread.ts', import.meta.url),
    threads: 2,
    maxWaiting: 100,
  });
  readonly #personThreads = new ThreadPool<MatchPersonsJob, MatchedPerson[]>({
    entry: new URL('./persons-thread.ts', import.meta.url),
    threads: 1,
    maxWaiting: 100,
  });
  readonly #turns = new Turns({ atOnce: AT_ONCE, perAsker: 1 });

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async close(): Promise<void> {
    await Promise.all([this.#threads.close(), this.#personThreads.close()]);
  }

  /** Answers for each of the persons. Throws a NoTurnError if too many others are at work. */
  persons(projectId: number, job: MatchPersonsJob, signal: AbortSignal): Promise<MatchedPerson[]> {
    const budget = { limitMs: THREAD_LIMIT, usedMs: 0 };
    return this.#turns.take({ projectId, signal }, () =>
      this.#personThreads.run(job, budget, undefined, signal),
    );
  }

  /** Throws a NoTurnError if too many others are at work. */
  match(known: Known, keys: readonly EventKey[], signal: AbortSignal): Promise<MatchedPage> {
    const asker = { projectId: known.definitions.projectId, signal };
    return this.#turns.take(asker, async () => {
      try {
        return await this.#read(known, keys);
      } catch (error) {
        if (!isLost(error)) throw error;
        return this.#oneByOne(known, keys, signal);
      }
    });
  }

  /** Asks about each event alone, so that only those are left out that end their thread. */
  async #oneByOne(known: Known, keys: readonly EventKey[], signal: AbortSignal): Promise<MatchedPage> {
    const all = emptyPage();
    const functionId = known.definitions.triggers[0]?.id ?? '';
    for (const key of keys) {
      signal.throwIfAborted();
      try {
        const { matched, errors } = await this.#read(known, [key]);
        all.matched = all.matched.concat(matched);
        all.errors = all.errors.concat(errors);
      } catch (error) {
        if (!isLost(error)) throw error;
        all.errors.push({ ...key, functionId, message: (error as Error).message });
      }
    }
    return all;
  }

  async #read(known: Known, keys: readonly EventKey[]): Promise<MatchedPage> {
    const page = emptyPage();
    const { definitions } = known;
    const { projectId, version } = definitions;
    const pieces = new RowPieces(PIECE);
    const ask = async (bytes: Buffer) => {
      const job: MatchEventsJob = {
        ...{ bytes, versions: [[projectId, version]], definitions: [definitions], limit: LIMIT },
        room: Number.POSITIVE_INFINITY,
        ...{ late: page.left.size > 0 ? [projectId] : [], mostErrors: Number.POSITIVE_INFINITY },
      };
      const budget = { limitMs: THREAD_LIMIT, usedMs: 0 };
      const answer = await this.#threads.run(job, budget, undefined, undefined, [
        bytes.buffer as ArrayBuffer,
      ]);
      page.matched = page.matched.concat(answer.matched);
      page.errors = page.errors.concat(answer.errors);
      for (const [, late] of answer.late) {
        for (const { uuid } of keysOf(Buffer.from(late))) page.left.add(uuid);
      }
    };
    for await (const chunk of copyOut(this.#pool, eventsByKeySql(keys, besideOf([known])))) {
      const piece = pieces.take(chunk);
      if (piece) await ask(piece);
    }
    const rest = pieces.rest();
    if (rest) await ask(rest);
    return page;
  }
}

const emptyPage = (): MatchedPage => ({ matched: [], errors: [], left: new Set() });

/** Answers whether filters took more than a thread has. */
const isLost = (error: unknown): boolean =>
  error instanceof ThreadError && error.code !== 'busy' && !error.failure;
