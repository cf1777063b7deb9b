import { copyOut } from '../../db/copy-out.ts';
import { isOfClass, OF_DATA } from '../../db/error-class.ts';
import type { Pool, Transaction } from '../../db/pool.ts';
import { ThreadError, type ThreadPool } from '../../hog/threads/pool.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { type Batch, batchKeys } from '../rows/batches.ts';
import { eventsByKeySql, eventsInPlaceSql } from '../rows/events.ts';
import { type DisabledFunction, disabledFunctions } from '../rows/states.ts';
import { WATCHER } from '../rules/watcher.ts';
import type { DefinitionCache, Versions } from './definitions.ts';
import { ID_BYTES, idOf, idsOf, KEY_BYTES, keysOf, RowPieces } from './event-rows.ts';
import { Found } from './found.ts';
import type { Definitions, MatchEventsJob, MatchedEvents } from './match.ts';

export type MatchThreads = Pick<ThreadPool<MatchEventsJob, MatchedEvents>, 'run'>;

export interface TurnDependencies {
  /** Where events are read. */
  readPool: Pool;
  logger: Pick<Logger, 'warn'>;
}

/** About how many bytes of rows a turn takes, and how many it reads at most. What is left gets turns of its own. */
export const BYTES_AT_ONCE = 32 * 1024 * 1024;
const MOST_BYTES = 4 * BYTES_AT_ONCE;
/** About how many bytes of rows a thread gets at once. */
const PIECE = 512 * 1024;
const PIECES_AT_ONCE = 3;
/** How long a thread may take for a piece. Steps of filters are limited, so only a broken thread takes so long. */
const THREAD_LIMIT = 30_000;
export const KEYS_AT_ONCE = 500;
/** So many pages before the end of the table there may be room for another row. */
const EARLIER = 16;

/** What a turn may do for each project. */
export interface TurnLimits {
  /** How long the filters of one project may take for a piece, in milliseconds. What is left gets turns of its own. */
  limit: number;
  /**
   * To how many invocations of one project a turn leads. What would lead to more gets turns of its own, too: everybody
   * whose events are in a turn waits until all of it is written.
   */
  room: number;
  /** The same for a turn with events of several projects: others wait for what one of them leads to. */
  roomBesideOthers: number;
  /** Whether the first event of the first piece is taken in any case. */
  takesFirst: boolean;
  /** How much is read of events, in bytes. */
  mostBytes: number;
  /** Whether a thread is left to other turns. */
  leavesThread: boolean;
  /** Projects whose events are left to turns of their own, whatever they lead to. */
  leaves?: ReadonlySet<number>;
}
export const COMMON: TurnLimits = {
  ...{ limit: 200, room: 10_000, roomBesideOthers: 1_000, takesFirst: false },
  ...{ mostBytes: MOST_BYTES, leavesThread: false },
};
/** Of a turn for one project: nobody else waits for it. */
export const ALONE: TurnLimits = {
  ...{ limit: 1_000, room: 20_000, roomBesideOthers: 20_000, takesFirst: true },
  ...{ mostBytes: BYTES_AT_ONCE, leavesThread: true },
};

/**
 * What events lead to is not known. `isFault`: because of an error of ours, or because they cannot be read. Otherwise filters took
 * more than a thread has.
 */
class UnansweredError extends Error {
  readonly isFault: boolean;

  constructor(cause: Error, isFault: boolean) {
    super(isFault ? 'events could not be looked at' : 'filters of functions ended their thread', { cause });
    this.isFault = isFault;
  }
}

/** After so many events that cannot be looked at, the rest of a turn waits for another one. */
const MOST_FAULTS = 10;

const NONE: ReadonlySet<number> = new Set();

const keysIn = (keys: Buffer = Buffer.alloc(0)): Buffer[] =>
  Array.from({ length: keys.length / KEY_BYTES }, (_, index) =>
    keys.subarray(index * KEY_BYTES, (index + 1) * KEY_BYTES),
  );

/** Which events were read. */
class Seen {
  /** How many of each transaction, and which. */
  readonly #counts = new Map<number, number>();
  readonly #keys = new Map<number, Uint8Array[]>();

  /** Returns how many these are. */
  add(xid: number, ids: Uint8Array): number {
    const count = ids.length / ID_BYTES;
    this.#counts.set(xid, this.of(xid) + count);
    const list = this.#keys.get(xid);
    if (list) list.push(ids);
    else this.#keys.set(xid, [ids]);
    return count;
  }

  of(xid: number): number {
    return this.#counts.get(xid) ?? 0;
  }

  /** The keys of events that were not read, of one transaction or of all. */
  missing(keys: Buffer, xid?: number): Buffer[] {
    const seen = xid === undefined ? [...this.#keys.values()].flat() : (this.#keys.get(xid) ?? []);
    const known = new Set(seen.flatMap(idsOf));
    return keysIn(keys).filter((one) => !keysOf(one).some((key) => known.has(idOf(key))));
  }
}

/** Reads some events in one transaction, and finds out for which functions they are. */
export class Turn {
  found = new Found();
  /** The functions of its projects that are not run because of what they cost. */
  disabled: ReadonlyMap<string, DisabledFunction> = new Map();
  /** How much was read of events. */
  bytes = 0;
  readonly #deps: TurnDependencies;
  readonly #cache: DefinitionCache;
  readonly #threads: MatchThreads;
  readonly #client: Transaction;
  readonly #limits: TurnLimits;
  #room: number;
  #seen = new Seen();
  /** How many events were read. */
  #rows = 0;
  /** Whether it has read as much as it may. */
  #isFull = false;
  #hasBegun = false;

  constructor(
    deps: TurnDependencies,
    cache: DefinitionCache,
    threads: MatchThreads,
    client: Transaction,
    limits: TurnLimits,
  ) {
    this.#deps = deps;
    this.#cache = cache;
    this.#threads = threads;
    this.#client = client;
    this.#limits = limits;
    this.#room = limits.room;
  }

  async batches(batches: readonly Batch[]): Promise<void> {
    try {
      await this.#batches(await this.#withoutLeft(batches));
    } catch (error) {
      if (!(error instanceof UnansweredError)) throw error;
      this.#deps.logger.warn({ err: error.cause }, error.message);
      // Each of the projects gets turns alone, so that only one of them is hit.
      this.#forget();
      const ids = batches.map(({ id }) => id);
      for (const keys of (await batchKeys(this.#client, ids)).values()) this.#leave(keys);
    }
  }

  /** Leaves the events of some projects for later. Returns the batches as they are without them. */
  async #withoutLeft(batches: readonly Batch[]): Promise<readonly Batch[]> {
    const leaves = this.#limits.leaves ?? NONE;
    const mixed = batches.filter(({ projects }) => projects.some((one) => leaves.has(one)));
    if (mixed.length === 0) return batches;
    const keys = await batchKeys(
      this.#client,
      mixed.map(({ id }) => id),
    );
    const left = new Map<number, number>();
    for (const { xid } of mixed) {
      const own = keysIn(keys.get(xid)).filter((key) => leaves.has(key.readInt32BE(0)));
      for (const key of own) this.found.addLate(key.readInt32BE(0), key);
      left.set(xid, own.length);
    }
    return batches.map((one) => ({
      ...one,
      projects: one.projects.filter((project) => !leaves.has(project)),
      events: one.events - (left.get(one.xid) ?? 0),
    }));
  }

  #forget(): void {
    this.found = new Found();
    this.#seen = new Seen();
    this.#hasBegun = false;
  }

  async #batches(batches: readonly Batch[]): Promise<void> {
    const projects = [...new Set(batches.flatMap((one) => one.projects))];
    const versions = await this.#current(projects);
    if (projects.length > 1) this.#room = Math.min(this.#limits.room, this.#limits.roomBesideOthers);
    const beside = this.#cache.beside(projects);
    const placed = batches.filter((one) => one.from_page !== null);
    await this.#askBeside(projects, async () => {
      for (const [partition, some] of Map.groupBy(placed, (one) => one.partition)) {
        const place = {
          ...{ partition, projects },
          // A transaction begins with pages in which it has found room.
          fromPage: Math.max(0, Math.min(...some.map((one) => one.from_page as number)) - EARLIER),
          toPage: Math.max(...some.map((one) => one.to_page as number)),
          xids: some.map((one) => one.xid),
        };
        await this.#read(eventsInPlaceSql(place, beside), versions);
      }
    });
    const incomplete = batches.filter((one) => this.#seen.of(one.xid) !== one.events);
    if (incomplete.length > 0) await this.#readMissing(incomplete, versions);
  }

  /** Asks for disabled functions while events are read, which happens on another connection. */
  async #askBeside(projects: readonly number[], read: () => Promise<void>): Promise<void> {
    const [asked, done] = await Promise.allSettled([
      disabledFunctions(this.#client, projects, WATCHER),
      read(),
    ]);
    if (asked.status === 'fulfilled') this.disabled = asked.value;
    if (done.status === 'rejected') throw done.reason;
    if (asked.status === 'rejected') throw asked.reason;
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
          if (enabledAt <= noted_at) this.found.counts.add(project, id, 'other', 'filtered', count);
        }
      }
    }
  }

  async keys(projectId: number, keys: Buffer): Promise<void> {
    const versions = await this.#current([projectId]);
    const read = (some: Buffer) =>
      this.#read(eventsByKeySql(keysOf(some), this.#cache.beside([projectId])), versions);
    try {
      await this.#askBeside([projectId], () => read(keys));
      if (this.#isFull) this.#leave(keys);
    } catch (error) {
      if (!(error instanceof UnansweredError)) throw error;
      this.#forget();
      await this.#oneByOne(projectId, keysIn(keys), read);
    }
  }

  /**
   * Asks about each event alone, so that none is left out because of another one. What a thread cannot look at by a fault of ours
   * stays for later, behind all others: the fault may be mended by then.
   */
  async #oneByOne(
    projectId: number,
    keys: readonly Buffer[],
    read: (key: Buffer) => Promise<void>,
  ): Promise<void> {
    const faulty: Buffer[] = [];
    for (const [index, key] of keys.entries()) {
      if (faulty.length === MOST_FAULTS) {
        this.found.addLate(projectId, Buffer.concat(keys.slice(index)));
        break;
      }
      try {
        await read(key);
      } catch (error) {
        if (!(error instanceof UnansweredError)) throw error;
        const cannot = 'filters of functions cannot be asked about an event';
        this.#deps.logger.warn({ err: error.cause, projectId }, cannot);
        if (error.isFault) faulty.push(key);
        else this.found.missing += 1;
      }
    }
    for (const key of faulty) this.found.addLate(projectId, key);
  }

  /** Reads events by their keys that do not lie where they were expected. */
  async #readMissing(batches: readonly Batch[], versions: Versions): Promise<void> {
    const keys = await batchKeys(
      this.#client,
      batches.map(({ id }) => id),
    );
    const leaves = this.#limits.leaves ?? NONE;
    const missing = batches
      .flatMap(({ xid }) => this.#seen.missing(keys.get(xid) ?? Buffer.alloc(0), xid))
      .filter((key) => !leaves.has(key.readInt32BE(0)));
    const beside = this.#cache.beside([...new Set(batches.flatMap((one) => one.projects))]);
    const before = this.#rows;
    for (let at = 0; at < missing.length && !this.#isFull; at += KEYS_AT_ONCE) {
      const some = missing.slice(at, at + KEYS_AT_ONCE).flatMap(keysOf);
      await this.#read(eventsByKeySql(some, beside), versions);
    }
    if (this.#isFull) this.#leave(Buffer.concat(missing));
    else this.found.missing += Math.max(0, missing.length - (this.#rows - before));
  }

  /** Leaves those of the events for later that were not read. */
  #leave(keys: Buffer): void {
    for (const key of this.#seen.missing(keys)) this.found.addLate(key.readInt32BE(0), key);
  }

  /** Makes sure that the definitions in memory are up to date. Returns their versions. */
  #current(projects: readonly number[]): Promise<Versions> {
    return this.#cache.current(this.#client, projects);
  }

  /** Reads events and finds out for which functions they are. A piece is read while others are matched. */
  async #read(sql: string, versions: Versions): Promise<void> {
    const pieces = new RowPieces(PIECE);
    const running = new Set<Promise<void>>();
    const failures: unknown[] = [];
    const begin = (bytes: Buffer) => {
      const isFirst = !this.#hasBegun;
      this.#hasBegun = true;
      const one = this.#match(bytes, versions, isFirst)
        .catch((error: unknown) => void failures.push(error))
        .finally(() => running.delete(one));
      running.add(one);
    };
    try {
      for await (const chunk of copyOut(this.#deps.readPool, sql)) {
        const piece = pieces.take(chunk);
        if (piece) begin(piece);
        this.bytes += chunk.length;
        // Who sends much at once does not keep others waiting for all of it.
        this.#isFull = this.bytes > this.#limits.mostBytes && (this.#rows > 0 || running.size > 0);
        if (this.#isFull || failures.length > 0) break;
        if (running.size >= PIECES_AT_ONCE) await Promise.race(running);
      }
      const rest = pieces.rest();
      if (rest && failures.length === 0) begin(rest);
    } catch (error) {
      throw isOfClass(error, OF_DATA) ? new UnansweredError(error as Error, true) : error;
    } finally {
      // What is found after an error would count beside what is left for later because of it.
      await Promise.all(running);
    }
    if (failures.length > 0) throw failures[0];
  }

  async #match(
    bytes: Uint8Array,
    versions: Versions,
    isFirst: boolean,
    definitions: Definitions[] = [],
  ): Promise<void> {
    const { limit, takesFirst, leavesThread } = this.#limits;
    const room = this.#room;
    const late = [...this.found.late.keys()];
    const job: MatchEventsJob = {
      ...{ bytes, versions, definitions, late, limit, room },
      takesFirst: takesFirst && isFirst,
    };
    let answer: MatchedEvents;
    try {
      const budget = { limitMs: THREAD_LIMIT, usedMs: 0 };
      answer = await this.#threads.run(job, budget, leavesThread ? 'alone' : undefined, undefined, [
        bytes.buffer as ArrayBuffer,
      ]);
    } catch (error) {
      if (!(error instanceof ThreadError) || error.code === 'busy') throw error;
      throw new UnansweredError(error, error.failure !== null);
    }
    if (answer.needs.length > 0) {
      const needed = answer.needs.map((one) => this.#cache.get(one));
      return this.#match(answer.bytes as Uint8Array, versions, isFirst, needed);
    }
    for (const [xid, ids] of answer.seen) this.#rows += this.#seen.add(xid, ids);
    for (const [projectId, keys] of answer.late) this.found.addLate(projectId, Buffer.from(keys));
    for (const [projectId, functionId, name, count] of answer.counts) {
      this.found.counts.add(projectId, functionId, 'other', name, count);
    }
    for (const one of answer.matched) this.found.add(one, room);
    for (const one of answer.errors) this.found.errors.push(one);
  }
}
