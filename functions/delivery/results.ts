import { setTimeout as pause } from 'node:timers/promises';
import { isOfClass } from '../../db/error-class.ts';
import { type Pool, transaction } from '../../db/pool.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { cleanText } from '../../values/texts.ts';
import { wakeNext } from '../rows/lines.ts';
import { addLogs } from '../rows/logs.ts';
import type { QueueRow } from '../rows/queue.ts';
import { type StoredResult, storeResults } from '../rows/results.ts';
import { type Cost, charge } from '../rows/states.ts';
import { stateLine } from '../rules/state-line.ts';
import { WATCHER } from '../rules/watcher.ts';
import type { Outcome } from './delivery.ts';
import type { Leases } from './leases.ts';
import { failed } from './outcomes.ts';
import type { Load } from './shares.ts';

interface Result {
  row: QueueRow;
  lease: string;
  outcome: Omit<Outcome, 'progress' | 'attempts'>;
  /** JSON. */
  attempts: string;
  /** JSON. Null: there is none. */
  progress: string | null;
  done(isOurs: boolean): void;
}

/** How many results are written at once at most, and about how many characters of attempts and progress. */
const MOST = 1_000;
const MOST_CHARACTERS = 16_000_000;
/** How long results wait for others, in milliseconds. */
const GATHER = 5;
const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 2_000;
/**
 * How long results wait for Postgres, in milliseconds. What is given up runs again. Nobody can begin it while Postgres is
 * away, so the wait is much longer than a lease.
 */
const PATIENCE = 600_000;

/** Classes of errors of Postgres: values and statements that it takes at no time. */
const REFUSED = ['22', '54'];
const UNSTORABLE = 'What the invocation came to could not be stored.';

/** Writes what became of invocations. Those that end while others are being written share the next transaction. */
export class Results {
  readonly #pool: Pool;
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #characters: Load['characters'];
  readonly #leases: Pick<Leases, 'leaseOf' | 'release' | 'seconds'>;
  /** When results are given up that Postgres did not take, in milliseconds. */
  #end = Number.POSITIVE_INFINITY;
  #waiting: Result[] = [];
  #writing: Promise<void> | undefined;

  /** `characters` counts what results take until they are written. */
  constructor(
    pool: Pool,
    logger: Pick<Logger, 'warn'>,
    { characters }: Pick<Load, 'characters'>,
    leases: Pick<Leases, 'leaseOf' | 'release' | 'seconds'>,
  ) {
    this.#pool = pool;
    this.#logger = logger;
    this.#characters = characters;
    this.#leases = leases;
  }

  /** From now on, results wait for Postgres no longer than a lease. */
  hurry(): void {
    this.#end = Date.now() + this.#leases.seconds * 1_000;
  }

  /**
   * Resolves when the result is written. False: the invocation belonged to somebody else by then. Of what the invocation has
   * had so far, only the text is kept: answers may be large.
   */
  add(row: QueueRow, lease: string, { progress, attempts, ...outcome }: Outcome): Promise<boolean> {
    const texts = { attempts: storable(attempts), progress: progress && JSON.stringify(progress) };
    const small = { ...row, progress: null, globals: null };
    return new Promise((resolve) => {
      const one: Result = { row: small, lease, outcome, ...texts, done: resolve };
      this.#characters.add(row.project_id, sizeOf(one));
      this.#waiting.push(one);
      this.#writing ??= this.#write().finally(() => {
        this.#writing = undefined;
      });
    });
  }

  async idle(): Promise<void> {
    while (this.#writing) await this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      await pause(GATHER);
      const some = this.#next();
      const ours = await this.#persistently(some);
      for (const one of some) {
        this.#characters.add(one.row.project_id, -sizeOf(one));
        this.#leases.release(one.row, one.lease);
        one.done(ours.has(one.row.seq));
      }
    }
  }

  /** Takes the first of those that wait: as many as may be written at once. */
  #next(): Result[] {
    let characters = 0;
    const end = this.#waiting.findIndex((one, at) => {
      characters += sizeOf(one);
      return at === MOST || (at > 0 && characters > MOST_CHARACTERS);
    });
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }

  async #persistently(results: readonly Result[]): Promise<ReadonlySet<number>> {
    const until = Date.now() + PATIENCE;
    for (let wait = FIRST_PAUSE; ; wait = Math.min(wait * 2, LONGEST_PAUSE)) {
      try {
        return await this.#store(results);
      } catch (error) {
        this.#logger.warn(
          { err: error, results: results.length },
          'results of functions could not be written',
        );
        if (isOfClass(error, REFUSED)) return this.#apart(results);
        if (Date.now() + wait > Math.min(until, this.#end)) return new Set();
        await pause(wait);
      }
    }
  }

  /** Writes results of which some cannot be stored: those that can, and of the others that they failed. */
  async #apart(results: readonly Result[]): Promise<ReadonlySet<number>> {
    if (results.length === 1) {
      const [{ outcome, ...one }] = results as [Result];
      if (outcome.error === UNSTORABLE) return new Set();
      const alone = { ...one.row, others: [] };
      return this.#persistently([
        { ...one, attempts: '[]', progress: null, outcome: failed(alone, UNSTORABLE) },
      ]);
    }
    const half = Math.ceil(results.length / 2);
    const first = await this.#persistently(results.slice(0, half));
    return new Set([...first, ...(await this.#persistently(results.slice(half)))]);
  }

  /** Returns of which results the lease still held. */
  #store(results: readonly Result[]): Promise<ReadonlySet<number>> {
    const stored = results.flatMap((one) => this.#stored(one));
    if (linesOf(results).length === 0 && costsOf(results).length === 0)
      return storeResults(this.#pool, stored);
    return transaction(this.#pool, async (client) => {
      const seqs = await storeResults(client, stored);
      const ours = results.filter(({ row }) => seqs.has(row.seq));
      await wakeNext(client, linesOf(ours));
      const changes = await charge(client, costsOf(ours), WATCHER);
      await addLogs(client, changes.map(stateLine));
      return seqs;
    });
  }

  /** What is stored of a result. Nothing, if the invocation is known to belong to somebody else. */
  #stored({ row: { seq }, lease, outcome, attempts, progress }: Result): StoredResult[] {
    const { status, error, attempt, after, logs, counts } = outcome;
    if (status === 'lost') return [];
    return [
      {
        ...{ seq, lease: this.#leases.leaseOf(seq, lease), status, attempt, after, counts },
        text: status === 'postponed' ? progress : attempts,
        error: error === null ? null : cleanText(error),
        logs: logs.map((line) => ({ ...line, message: cleanText(line.message) })),
      },
    ];
  }
}

const sizeOf = ({ attempts, progress }: Result): number => attempts.length + (progress?.length ?? 0);

/** The lines in which others may wait for those of these that have ended. */
const linesOf = (results: readonly Result[]) =>
  results.flatMap(({ row: { project_id: projectId, function_id: functionId, line }, outcome }) =>
    line && outcome.status !== 'postponed' ? [{ projectId, functionId, line }] : [],
  );

/** What the results have cost, by function. */
function costsOf(results: readonly Result[]): Cost[] {
  const costs = new Map<string, Cost>();
  for (const { row, outcome } of results) {
    if (outcome.cost === 0) continue;
    const known = costs.get(row.function_id);
    if (known) known.cost += outcome.cost;
    else {
      const { project_id: projectId, function_id: functionId } = row;
      costs.set(functionId, { projectId, functionId, cost: outcome.cost });
    }
  }
  return [...costs.values()];
}

/** JSON that Postgres can store and read. */
const storable = (value: unknown): string =>
  JSON.stringify(value, (_key, one) => (typeof one === 'string' ? cleanText(one) : one));
