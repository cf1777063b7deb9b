import { randomInt } from 'node:crypto';
import { copyOut } from '../../db/copy-out.ts';
import { type Pool, type Transaction, transaction } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { ThreadError, ThreadPool } from '../../hog/threads/pool.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { cleanText } from '../../values/texts.ts';
import { type Batch, batchKeys, deleteBatches, takeBatches } from '../rows/batches.ts';
import { addCounts, Counts } from '../rows/counts.ts';
import { eventsByKeySql, eventsInPlaceSql } from '../rows/events.ts';
import { DISABLED, recordRefused } from '../rows/history.ts';
import { addLateKeys, takeLate, updateLate } from '../rows/late-batches.ts';
import { addLogs } from '../rows/logs.ts';
import { countMasked, type MaskRequest } from '../rows/masks.ts';
import { floodedOf, keepPositions } from '../rows/positions.ts';
import { enqueue, type NewInvocation } from '../rows/queue.ts';
import { disabledFunctions } from '../rows/states.ts';
import { LONGEST_WINDOW, letThrough, type MaskingRule } from '../rules/masking.ts';
import { STATE, WATCHER } from '../rules/watcher.ts';
import { DefinitionCache, type Versions } from './definitions.ts';
import { ID_BYTES, idOf, idsOf, KEY_BYTES, keysOf, RowPieces } from './event-rows.ts';
import type { Definitions, MatchEventsJob, MatchedEvent, MatchedEvents } from './match.ts';
import type { DispatchMetrics } from './metrics.ts';

export interface DispatcherDependencies {
  pool: Pool;
  /** Where events are read. */
  readPool: Pool;
  logger: Pick<Logger, 'warn'>;
  /** The address under which users see Sluice. */
  site: string;
  metrics?: DispatchMetrics;
  /** Invocations of these functions wait. */
  queued(functions: readonly { projectId: number; functionId: string }[]): void;
}

/** About how many events a turn takes. Each turn waits for its transaction, so a backlog needs large ones. */
const EVENTS_AT_ONCE = 40_000;
const MOST_BATCHES = 500;
/** About how many bytes of rows a turn takes, and how many it reads at most. What is left gets turns of its own. */
const BYTES_AT_ONCE = 32 * 1024 * 1024;
const MOST_BYTES = 4 * BYTES_AT_ONCE;
/** About how many bytes of rows a thread gets at once. */
const PIECE = 512 * 1024;
const PIECES_AT_ONCE = 3;
/** How long the filters of one project may take for a piece, in milliseconds. What is left gets turns of its own. */
const PROJECT_LIMIT = 200;
const LATE_LIMIT = 1_000;
/**
 * To how many invocations of one project a turn leads. What would lead to more gets turns of its own, too: everybody whose
 * events are in a turn waits until all of it is written.
 */
const ROOM = 10_000;
const LATE_ROOM = 20_000;
/** How long a thread may take for a piece. Steps of filters are limited, so only a broken thread takes so long. */
const THREAD_LIMIT = 30_000;
const KEYS_AT_ONCE = 500;
/** So many pages before the end of the table there may be room for another row. */
const EARLIER = 16;

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
  #batches = 16;

  constructor(deps: DispatcherDependencies, limits: Partial<Pick<TurnLimits, 'room' | 'mostBytes'>> = {}) {
    this.#deps = deps;
    this.#limits = { common: { ...COMMON, ...limits }, alone: { ...ALONE, ...limits } };
    this.#definitions = new DefinitionCache(deps.pool, deps.site);
  }

  close(): Promise<void> {
    return this.#threads.close();
  }

  /** Takes the oldest batches that nobody else has taken. Returns how many events they had. */
  async turn(): Promise<number> {
    const outcome = await transaction(this.#deps.pool, async (client) => {
      const batches = await takeBatches(client, this.#batches);
      if (batches.length === 0) return undefined;
      const turn = new Turn(this.#deps, this.#definitions, this.#threads, client, this.#limits.common);
      await turn.batches(batches.filter((one) => one.events > 0));
      await turn.countSkipped(batches);
      await turn.write();
      await deleteBatches(
        client,
        batches.map(({ id }) => id),
      );
      return { turn, batches };
    });
    if (!outcome) return 0;
    const { turn, batches } = outcome;
    const events = batches.reduce((sum, one) => sum + one.events, 0);
    const share = Math.min(
      EVENTS_AT_ONCE / Math.max(1, events),
      BYTES_AT_ONCE / Math.max(1, turn.bytes),
      MOST_BATCHES / batches.length,
    );
    this.#batches = Math.max(1, Math.ceil(share * batches.length));
    const skipped = batches.flatMap((one) => one.skipped ?? []).reduce((sum, one) => sum + one.count, 0);
    this.#told(turn, events + skipped);
    return events + skipped;
  }

  /** Takes events of a project whose filters take long: the one that has waited longest for a turn. */
  async lateTurn(): Promise<number> {
    const outcome = await transaction(this.#deps.pool, async (client) => {
      const taken = await takeLate(client);
      if (!taken) return undefined;
      const keys = taken.keys.subarray(0, KEYS_AT_ONCE * KEY_BYTES);
      const turn = new Turn(this.#deps, this.#definitions, this.#threads, client, this.#limits.alone);
      await turn.keys(taken.project_id, keys);
      const left = turn.late.get(taken.project_id) ?? [];
      turn.late.delete(taken.project_id);
      await turn.write();
      await updateLate(client, taken.id, Buffer.concat([...left, taken.keys.subarray(keys.length)]));
      return { turn, events: keys.length / KEY_BYTES };
    });
    if (!outcome) return 0;
    this.#told(outcome.turn, outcome.events);
    return outcome.events;
  }

  #told({ matched, missing }: Turn, events: number): void {
    this.#deps.metrics?.events.inc(events);
    this.#deps.metrics?.invocations.inc(matched.length);
    if (missing > 0) this.#deps.metrics?.missing.inc(missing);
    this.#deps.queued(matched);
  }
}

/** Filters took more than a thread has. What they were asked about is not known. */
class ThreadLostError extends Error {}

/** What a turn may do for each project. */
export interface TurnLimits {
  /** How long the filters may take for a piece, in milliseconds. */
  limit: number;
  room: number;
  /** Whether the first event of the first piece is taken in any case. */
  takesFirst: boolean;
  /** How much is read of events, in bytes. */
  mostBytes: number;
}
const COMMON: TurnLimits = {
  limit: PROJECT_LIMIT,
  room: ROOM,
  takesFirst: false,
  mostBytes: MOST_BYTES,
};
/** Nobody else waits for it. */
const ALONE: TurnLimits = {
  ...{ limit: LATE_LIMIT, room: LATE_ROOM, takesFirst: true },
  mostBytes: BYTES_AT_ONCE,
};

/** What is done with some batches in one transaction. */
class Turn {
  matched: MatchedEvent[] = [];
  readonly late = new Map<number, Buffer[]>();
  /** Events that are no longer there. */
  missing = 0;
  /** How much was read of events. */
  bytes = 0;
  readonly #deps: DispatcherDependencies;
  readonly #cache: DefinitionCache;
  readonly #threads: ThreadPool<MatchEventsJob, MatchedEvents>;
  readonly #client: Transaction;
  readonly #limits: TurnLimits;
  /** To how many invocations the events of each project lead. */
  readonly #found = new Map<number, number>();
  #counts = new Counts();
  readonly #errors: MatchedEvents['errors'] = [];
  /** How many events of each transaction were read, which, and how many of all. */
  readonly #seen = new Map<number, number>();
  readonly #keys = new Map<number, Uint8Array[]>();
  #rows = 0;
  /** Whether it has read as much as it may. */
  #isFull = false;
  #hasBegun = false;

  constructor(
    deps: DispatcherDependencies,
    cache: DefinitionCache,
    threads: ThreadPool<MatchEventsJob, MatchedEvents>,
    client: Transaction,
    limits: TurnLimits,
  ) {
    this.#deps = deps;
    this.#cache = cache;
    this.#threads = threads;
    this.#client = client;
    this.#limits = limits;
  }

  async batches(batches: readonly Batch[]): Promise<void> {
    try {
      await this.#batches(batches);
    } catch (error) {
      if (!(error instanceof ThreadLostError)) throw error;
      this.#deps.logger.warn({ err: error.cause }, error.message);
      // Each of the projects gets turns alone, so that only one of them is hit.
      this.#forget();
      const ids = batches.map(({ id }) => id);
      for (const keys of (await batchKeys(this.#client, ids)).values()) this.#leave(keys);
    }
  }

  #forget(): void {
    this.matched = [];
    this.#errors.length = 0;
    this.#counts = new Counts();
    this.#seen.clear();
    this.#keys.clear();
    this.#found.clear();
    this.#hasBegun = false;
    this.late.clear();
    this.missing = 0;
  }

  async #batches(batches: readonly Batch[]): Promise<void> {
    const projects = [...new Set(batches.flatMap((one) => one.projects))];
    const versions = await this.#current(projects);
    const beside = this.#cache.beside(projects);
    const placed = batches.filter((one) => one.from_page !== null);
    for (const [partition, some] of byPartition(placed)) {
      const place = {
        ...{ partition, projects },
        // A transaction begins with pages in which it has found room.
        fromPage: Math.max(0, Math.min(...some.map((one) => one.from_page as number)) - EARLIER),
        toPage: Math.max(...some.map((one) => one.to_page as number)),
        xids: some.map((one) => one.xid),
      };
      await this.#read(eventsInPlaceSql(place, beside), versions);
    }
    const incomplete = batches.filter((one) => this.#seen.get(one.xid) !== one.events);
    if (incomplete.length > 0) await this.#readMissing(incomplete, versions);
  }

  /** Counts events that capture has left out, for the functions that they would have been looked at for. */
  async countSkipped(batches: readonly Batch[]): Promise<void> {
    const skipping = batches.filter((one) => one.skipped);
    if (skipping.length === 0) return;
    const versions = await this.#current([...new Set(skipping.flatMap((one) => one.projects))]);
    const known = new Set(versions.map(([projectId]) => projectId));
    for (const { skipped, noted_at } of skipping) {
      for (const { project, name, count } of skipped ?? []) {
        if (!known.has(project)) continue;
        for (const { id, enabledAt } of this.#cache.candidates(project, name)) {
          if (enabledAt <= noted_at) this.#counts.add(project, id, 'other', 'filtered', count);
        }
      }
    }
  }

  async keys(projectId: number, keys: Buffer): Promise<void> {
    const versions = await this.#current([projectId]);
    const read = (some: Buffer) =>
      this.#read(eventsByKeySql(keysOf(some), this.#cache.beside([projectId])), versions);
    try {
      await read(keys);
      if (this.#isFull) this.#leave(keys);
    } catch (error) {
      if (!(error instanceof ThreadLostError)) throw error;
      this.#forget();
      for (let at = 0; at < keys.length; at += KEY_BYTES) {
        await read(keys.subarray(at, at + KEY_BYTES)).catch((reason: unknown) => {
          if (!(reason instanceof ThreadLostError)) throw reason;
          this.#deps.logger.warn(
            { err: reason.cause, projectId },
            'filters of functions cannot be asked about an event',
          );
          this.missing += 1;
        });
      }
    }
  }

  /** Reads events by their keys that do not lie where they were expected. */
  async #readMissing(batches: readonly Batch[], versions: Versions): Promise<void> {
    const keys = await batchKeys(
      this.#client,
      batches.map(({ id }) => id),
    );
    const missing = batches.flatMap(({ xid }) => this.#unseen(keys.get(xid) ?? Buffer.alloc(0), xid));
    const beside = this.#cache.beside([...new Set(batches.flatMap((one) => one.projects))]);
    const before = this.#rows;
    for (let at = 0; at < missing.length && !this.#isFull; at += KEYS_AT_ONCE) {
      const some = missing.slice(at, at + KEYS_AT_ONCE).flatMap(keysOf);
      await this.#read(eventsByKeySql(some, beside), versions);
    }
    if (this.#isFull) this.#leave(Buffer.concat(missing));
    else this.missing += Math.max(0, missing.length - (this.#rows - before));
  }

  /** The keys of events that were not read, of one transaction or of all. */
  #unseen(keys: Buffer, xid?: number): Buffer[] {
    const seen = xid === undefined ? [...this.#keys.values()].flat() : (this.#keys.get(xid) ?? []);
    const known = new Set(seen.flatMap(idsOf));
    return Array.from({ length: keys.length / KEY_BYTES }, (_, index) =>
      keys.subarray(index * KEY_BYTES, (index + 1) * KEY_BYTES),
    ).filter((one) => !keysOf(one).some((key) => known.has(idOf(key))));
  }

  /** Leaves those of the events for later that were not read. */
  #leave(keys: Buffer): void {
    for (const key of this.#unseen(keys)) this.#addLate(key.readInt32BE(0), key);
  }

  /** Makes sure that the definitions in memory are up to date. Returns their versions. */
  #current(projects: readonly number[]): Promise<Versions> {
    return this.#cache.current(this.#client, projects);
  }

  /** Reads events and finds out for which functions they are. A piece is read while others are matched. */
  async #read(sql: string, versions: Versions): Promise<void> {
    const pieces = new RowPieces(PIECE);
    const running = new Set<Promise<void>>();
    const begin = (bytes: Buffer) => {
      const isFirst = !this.#hasBegun;
      this.#hasBegun = true;
      const one = this.#match(bytes, versions, isFirst).finally(() => running.delete(one));
      // Whoever waits for all of them gets the error.
      one.catch(() => undefined);
      running.add(one);
    };
    for await (const chunk of copyOut(this.#deps.readPool, sql)) {
      const piece = pieces.take(chunk);
      if (piece) begin(piece);
      this.bytes += chunk.length;
      // Who sends much at once does not keep others waiting for all of it.
      this.#isFull = this.bytes > this.#limits.mostBytes && (this.#rows > 0 || running.size > 0);
      if (this.#isFull) break;
      if (running.size >= PIECES_AT_ONCE) await Promise.race(running);
    }
    const rest = pieces.rest();
    if (rest) begin(rest);
    await Promise.all(running);
  }

  async #match(
    bytes: Uint8Array,
    versions: Versions,
    isFirst: boolean,
    definitions: Definitions[] = [],
  ): Promise<void> {
    const { limit, room, takesFirst } = this.#limits;
    const late = [...this.late.keys()];
    const job: MatchEventsJob = {
      ...{ bytes, versions, definitions, late, limit, room },
      takesFirst: takesFirst && isFirst,
    };
    let answer: MatchedEvents;
    try {
      const budget = { limitMs: THREAD_LIMIT, usedMs: 0 };
      answer = await this.#threads.run(job, budget, undefined, undefined, [bytes.buffer as ArrayBuffer]);
    } catch (error) {
      if (!(error instanceof ThreadError) || error.code === 'busy' || error.failure) throw error;
      throw new ThreadLostError('filters of functions ended their thread', { cause: error });
    }
    if (answer.needs.length > 0) {
      const needed = answer.needs.map((one) => this.#cache.get(one));
      return this.#match(answer.bytes as Uint8Array, versions, isFirst, needed);
    }
    for (const [xid, ids] of answer.seen) {
      this.#rows += ids.length / ID_BYTES;
      this.#seen.set(xid, (this.#seen.get(xid) ?? 0) + ids.length / ID_BYTES);
      const list = this.#keys.get(xid);
      if (list) list.push(ids);
      else this.#keys.set(xid, [ids]);
    }
    for (const [projectId, keys] of answer.late) this.#addLate(projectId, Buffer.from(keys));
    for (const [projectId, functionId, name, count] of answer.counts) {
      this.#counts.add(projectId, functionId, 'other', name, count);
    }
    for (const one of answer.matched) this.#add(one);
    for (const one of answer.errors) this.#errors.push(one);
  }

  #add(matched: MatchedEvent): void {
    this.matched.push(matched);
    const found = (this.#found.get(matched.projectId) ?? 0) + 1;
    this.#found.set(matched.projectId, found);
    if (found === this.#limits.room && !this.late.has(matched.projectId))
      this.late.set(matched.projectId, []);
  }

  #addLate(projectId: number, keys: Buffer): void {
    const list = this.late.get(projectId);
    if (list) list.push(keys);
    else this.late.set(projectId, [keys]);
  }

  /** Writes what was found. */
  async write(): Promise<void> {
    this.matched = await this.#withoutDisabled();
    this.matched = await this.#unmasked();
    for (const { projectId, functionId } of this.matched) {
      this.#counts.add(projectId, functionId, 'other', 'triggered');
    }
    await this.#enqueue(this.matched.toSorted(byTime).map(invocationOf));
    for (const [projectId, keys] of this.late) {
      if (keys.length > 0) await addLateKeys(this.#client, projectId, Buffer.concat(keys));
    }
    const now = new Date().toISOString();
    await addLogs(
      this.#client,
      this.#errors.map(({ uuid, message, ...one }) => ({
        ...one,
        ...{ instanceId: uuid, timestamp: now, level: 'error' },
        message: cleanText(`Error filtering event ${uuid}: ${message}`),
      })),
    );
    await addCounts(this.#client, this.#counts.all);
  }

  /** Queues invocations. Of functions with too many waiting ones, only their positions are kept. */
  async #enqueue(invocations: readonly NewInvocation[]): Promise<void> {
    if (invocations.length === 0) return;
    const functions = [...new Set(invocations.map(({ functionId }) => functionId))];
    const flooded = await floodedOf(this.#client, functions);
    if (flooded.size === 0) return enqueue(this.#client, invocations);
    await enqueue(
      this.#client,
      invocations.filter(({ functionId }) => !flooded.has(functionId)),
    );
    await keepPositions(
      this.#client,
      invocations.filter(({ functionId }) => flooded.has(functionId)),
    );
  }

  /** Leaves out functions that are not run because of what they cost. Their invocations can be run later. */
  async #withoutDisabled(): Promise<MatchedEvent[]> {
    const projects = [...new Set(this.matched.map(({ projectId }) => projectId))];
    if (projects.length === 0) return [];
    const disabled = await disabledFunctions(this.#client, projects, WATCHER);
    if (disabled.size === 0) return this.matched;
    const refused = this.matched.filter(({ functionId }) => disabled.has(functionId));
    for (const { projectId, functionId } of refused) {
      const isForGood = disabled.get(functionId)?.state === STATE.disabledForGood;
      const name = isForGood ? 'disabled_permanently' : 'disabled_temporarily';
      this.#counts.add(projectId, functionId, 'failure', name);
    }
    await recordRefused(this.#client, refused.map(invocationOf), DISABLED);
    return this.matched.filter(({ functionId }) => !disabled.has(functionId));
  }

  /** Leaves out what is masked. */
  async #unmasked(): Promise<MatchedEvent[]> {
    const requests = new Map<string, MaskRequest & { rule: MaskingRule }>();
    for (const { projectId, functionId, mask } of this.matched) {
      const rule = mask === null ? null : this.#cache.masking(projectId, functionId);
      if (mask === null || !rule) continue;
      const key = `${functionId}:${mask}`;
      const known = requests.get(key);
      if (known) known.invocations += 1;
      else {
        const ttl = Math.min(rule.ttl ?? LONGEST_WINDOW, LONGEST_WINDOW);
        requests.set(key, {
          ...{ project_id: projectId, function_id: functionId },
          ...{ key: mask, ttl, invocations: 1, rule },
        });
      }
    }
    const before = await countMasked(this.#client, [...requests.values()]);
    const windows = new Map(
      [...requests].map(([key, { rule }], index) => [key, { rule, count: before[index]! }]),
    );
    return this.matched.filter(({ projectId, functionId, mask }) => {
      const window = windows.get(`${functionId}:${mask}`);
      if (!window) return true;
      const passes = letThrough(window.count, window.rule.threshold);
      window.count += 1;
      if (!passes) this.#counts.add(projectId, functionId, 'other', 'masked');
      return passes;
    });
  }
}

/** The order in which events came in, and of those that came in together, in which they happened. */
const byTime = (one: MatchedEvent, other: MatchedEvent): number =>
  one.receivedAt - other.receivedAt || compareTexts(one.timestamp.slice(0, -1), other.timestamp.slice(0, -1));
const compareTexts = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);

const invocationOf = ({ receivedAt, ...one }: MatchedEvent): NewInvocation => ({
  ...one,
  ...{ id: uuidv7(), clock: receivedAt, seed: randomInt(2 ** 31) },
});

function byPartition(batches: readonly Batch[]): Map<string, Batch[]> {
  const partitions = new Map<string, Batch[]>();
  for (const batch of batches) {
    const list = partitions.get(batch.partition);
    if (list) list.push(batch);
    else partitions.set(batch.partition, [batch]);
  }
  return partitions;
}
