import type { Queryable } from '../db/pool.ts';
import type { Logger } from '../telemetry/logger.ts';
import { createJournal, type Entry, type Journal, type JournalOptions } from './journal.ts';
import { addLogs } from './rows/logs.ts';
import { type Cost, charge, disabledFunctions } from './rows/states.ts';
import { stateLine } from './rules/state-line.ts';
import { STATE, WATCHER } from './rules/watcher.ts';

export interface LedgerOptions extends JournalOptions {
  queryable: Queryable;
  logger: Pick<Logger, 'warn'>;
}

const FLUSH_EVERY = 1_000;

/** Writes down what runs of functions did and cost, and knows which functions are suspended because of that. */
export class Ledger {
  readonly #options: LedgerOptions;
  readonly #journal: Journal;
  /** By project: why a function does not run. */
  readonly #suspended = new Map<number, Map<string, string>>();
  #costs = new Map<string, Cost>();
  /** Projects whose functions may be suspended by any process. */
  #watched = new Set<number>();
  readonly #timer: NodeJS.Timeout;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#journal = createJournal(options);
    this.#timer = setInterval(() => {
      this.#settle().catch((error) =>
        options.logger.warn({ err: error }, 'the cost of functions could not be written; it is kept'),
      );
    }, options.flushEvery ?? FLUSH_EVERY);
    this.#timer.unref();
  }

  /** The suspended functions of a project, with the metric that counts the reason. */
  suspended(projectId: number): ReadonlyMap<string, string> | undefined {
    return this.#suspended.get(projectId);
  }

  add(entry: Entry): void {
    this.#journal.add(entry);
  }

  /** Runs of a function have cost so many tokens. */
  charge({ projectId, functionId, cost }: Cost): void {
    if (cost === 0) return;
    const known = this.#costs.get(functionId);
    if (known) known.cost += cost;
    else this.#costs.set(functionId, { projectId, functionId, cost });
    this.#watched.add(projectId);
  }

  async flush(): Promise<void> {
    await this.#settle();
    await this.#journal.flush();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#settle().catch((error) =>
      this.#options.logger.warn({ err: error }, 'the last cost of functions could not be written'),
    );
    await this.#journal.close();
  }

  #settle(): Promise<void> {
    this.#writing = this.#writing.catch(() => undefined).then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    const costs = this.#costs;
    this.#costs = new Map();
    const { queryable } = this.#options;
    if (costs.size > 0) {
      try {
        const changes = await charge(queryable, [...costs.values()], WATCHER);
        await addLogs(queryable, changes.map(stateLine));
      } catch (error) {
        for (const one of costs.values()) this.charge(one);
        throw error;
      }
    }
    await this.look([...this.#watched]);
  }

  /** Reads which functions of projects are suspended. */
  async look(projectIds: readonly number[]): Promise<void> {
    if (projectIds.length === 0) return;
    const disabled = await disabledFunctions(this.#options.queryable, projectIds, WATCHER);
    const found = new Map<number, Map<string, string>>();
    for (const { project_id: projectId, function_id: id, state } of disabled.values()) {
      const reason = state === STATE.disabledForGood ? 'disabled_permanently' : 'disabled_temporarily';
      found.set(projectId, (found.get(projectId) ?? new Map()).set(id, reason));
    }
    for (const projectId of projectIds) {
      const own = found.get(projectId);
      if (own) {
        this.#suspended.set(projectId, own);
        this.#watched.add(projectId);
      } else {
        this.#suspended.delete(projectId);
        this.#watched.delete(projectId);
      }
    }
  }
}
