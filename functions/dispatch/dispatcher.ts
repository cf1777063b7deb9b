import { type Pool, transaction } from '../../db/pool.ts';
import { ThreadPool } from '../../hog/threads/pool.ts';
import { type Lane, takeBatches } from '../rows/batches.ts';
import { takeLate, updateLate } from '../rows/late-batches.ts';
import type { NewClaim, NewInvocation, QueueRow } from '../rows/queue.ts';
import { DefinitionCache } from './definitions.ts';
import { KEY_BYTES } from './event-rows.ts';
import { writeFound } from './found.ts';
import type { MatchEventsJob, MatchedEvents } from './match.ts';
import type { DispatchMetrics } from './metrics.ts';
import {
  ALONE,
  BYTES_AT_ONCE,
  COMMON,
  KEYS_AT_ONCE,
  Turn,
  type TurnDependencies,
  type TurnLimits,
} from './turn.ts';

export interface DispatcherDependencies extends TurnDependencies {
  pool: Pool;
  /** The address under which users see Sluice. */
  site: string;
  metrics?: DispatchMetrics;
  /** Invocations of these functions wait. */
  queued(functions: readonly { projectId: number; functionId: string }[]): void;
  /** Takes some of what is about to be queued. It is delivered as soon as it is queued, and need not be claimed. */
  take?(invocations: readonly NewInvocation[]): Taken | undefined;
}

/** What is delivered as soon as it is queued. */
export interface Taken extends NewClaim {
  /** It is queued and claimed, as far as its functions queue anything. */
  begin(rows: readonly QueueRow[]): void;
  /** Nobody knows whether it is queued. */
  drop(): void;
}

/** About how many events a turn takes. Each turn waits for its transaction, so a backlog needs large ones. */
const EVENTS_AT_ONCE = 40_000;
const MOST_BATCHES = 500;
/** What leads to so many invocations in a turn keeps others waiting. */
const MANY = 300;
/** For how long a project has turns of its own after its events have led to much, in milliseconds. */
const APART = 60_000;
/** If no other project had events for so long, nobody has to be left a thread. In milliseconds. */
const ALONE_AFTER = 10_000;

type LaneName = 'common' | 'heavy';

/** Turns stored events into invocations of functions. */
export class Dispatcher {
  readonly #deps: DispatcherDependencies;
  readonly #limits: { common: TurnLimits; alone: TurnLimits };
  readonly #definitions: DefinitionCache;
  readonly #threads = new ThreadPool<MatchEventsJob, MatchedEvents>({
    entry: new URL('./match-thread.ts', import.meta.url),
    threads: 2,
    maxWaiting: 100,
  });
  readonly #batches: Record<LaneName, number> = { common: 16, heavy: 16 };
  /** Projects whose events lead to much, and until when they have turns of their own. */
  readonly #heavy = new Map<number, number>();
  /** When the last common turn had something to do. */
  #lastCommon = 0;

  constructor(
    deps: DispatcherDependencies,
    limits: Partial<Pick<TurnLimits, 'room' | 'roomBesideOthers' | 'mostBytes'>> = {},
  ) {
    this.#deps = deps;
    this.#limits = { common: { ...COMMON, ...limits }, alone: { ...ALONE, ...limits } };
    this.#definitions = new DefinitionCache(deps.pool, deps.site);
  }

  close(): Promise<void> {
    return this.#threads.close();
  }

  /**
   * Takes the oldest batches that nobody else has taken, but those of projects whose events lead to much: others would wait
   * for all of it. Returns how many events they had.
   */
  async turn(): Promise<number> {
    const heavy = this.#heavyNow();
    const lane: Lane | undefined = heavy.length > 0 ? { of: 'others', projects: heavy } : undefined;
    const done = await this.#turn('common', lane, { leaves: new Set(heavy) });
    if (done > 0) this.#lastCommon = Date.now();
    return done;
  }

  /** Does the same for projects whose events lead to much. */
  async heavyTurn(): Promise<number> {
    const projects = this.#heavyNow();
    if (projects.length === 0) return 0;
    const leavesThread = Date.now() - this.#lastCommon < ALONE_AFTER;
    return this.#turn('heavy', { of: 'these', projects }, { leavesThread });
  }

  #heavyNow(): number[] {
    const now = Date.now();
    for (const [projectId, until] of this.#heavy) if (until < now) this.#heavy.delete(projectId);
    return [...this.#heavy.keys()];
  }

  async #turn(
    name: LaneName,
    lane: Lane | undefined,
    limits: Partial<Pick<TurnLimits, 'leaves' | 'leavesThread'>>,
  ): Promise<number> {
    let taken: Taken | undefined;
    const take = (invocations: readonly NewInvocation[]) => {
      taken = this.#deps.take?.(invocations);
      return taken;
    };
    const outcome = await transaction(this.#deps.pool, async (client) => {
      const batches = await takeBatches(client, this.#batches[name], lane);
      if (batches.length === 0) return undefined;
      const turn = new Turn(this.#deps, this.#definitions, this.#threads, client, {
        ...this.#limits.common,
        ...limits,
      });
      await turn.batches(batches.filter((one) => one.events > 0));
      await turn.countSkipped(batches);
      const written = await writeFound(client, turn.found, {
        ...{ definitions: this.#definitions, disabled: turn.disabled, batches: batches.map(({ id }) => id) },
        ...(name === 'common' ? { take } : {}),
      });
      return { turn, batches, ...written };
    }).catch((error: unknown) => {
      taken?.drop();
      throw error;
    });
    if (!outcome) return 0;
    const { turn, batches, invocations, claimed } = outcome;
    taken?.begin(claimed);
    for (const one of turn.found.heavy(MANY)) this.#heavy.set(one, Date.now() + APART);
    const events = batches.reduce((sum, one) => sum + one.events, 0);
    const share = Math.min(
      EVENTS_AT_ONCE / Math.max(1, events),
      BYTES_AT_ONCE / Math.max(1, turn.bytes),
      MOST_BATCHES / batches.length,
    );
    this.#batches[name] = Math.max(1, Math.ceil(share * batches.length));
    const skipped = batches.flatMap((one) => one.skipped ?? []).reduce((sum, one) => sum + one.count, 0);
    this.#tell(invocations, turn.found.missing, events + skipped, taken);
    return events + skipped;
  }

  /**
   * Takes events of a project whose filters take long: the one that has waited longest for a turn. Returns how many are done
   * with.
   */
  async lateTurn(): Promise<number> {
    const outcome = await transaction(this.#deps.pool, async (client) => {
      const taken = await takeLate(client);
      if (!taken) return undefined;
      const keys = taken.keys.subarray(0, KEYS_AT_ONCE * KEY_BYTES);
      const turn = new Turn(this.#deps, this.#definitions, this.#threads, client, this.#limits.alone);
      await turn.keys(taken.project_id, keys);
      const { found } = turn;
      const left = found.late.get(taken.project_id) ?? [];
      found.late.delete(taken.project_id);
      const { invocations } = await writeFound(client, found, {
        ...{ definitions: this.#definitions, disabled: turn.disabled, batches: [] },
      });
      await updateLate(client, taken.id, Buffer.concat([...left, taken.keys.subarray(keys.length)]));
      const done = keys.length - left.reduce((sum, one) => sum + one.length, 0);
      return { invocations, missing: found.missing, events: done / KEY_BYTES };
    });
    if (!outcome) return 0;
    this.#tell(outcome.invocations, outcome.missing, outcome.events);
    return outcome.events;
  }

  #tell(invocations: readonly NewInvocation[], missing: number, events: number, taken?: NewClaim): void {
    this.#deps.metrics?.events.inc(events);
    this.#deps.metrics?.invocations.inc(invocations.length);
    if (missing > 0) this.#deps.metrics?.missing.inc(missing);
    const waiting = taken ? invocations.filter(({ id }) => !taken.ids.has(id)) : invocations;
    if (waiting.length > 0) this.#deps.queued(waiting);
  }
}
