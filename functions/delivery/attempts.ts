import { setTimeout as pause } from 'node:timers/promises';
import { isOfClass, OF_DATA } from '../../db/error-class.ts';
import type { Pool } from '../../db/pool.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { keepBatchProgress, leaveBatch } from '../rows/delivery-batches.ts';
import { type FoundEvent, findEventsAt } from '../rows/events.ts';
import { keepProgress, type QueueRow } from '../rows/queue.ts';
import { type DisabledFunction, disabledFunctions } from '../rows/states.ts';
import type { StoredEvent } from '../rules/stored-event.ts';
import { WATCHER } from '../rules/watcher.ts';
import { allOf, beyondRoom, sizeOf } from './batches.ts';
import {
  type ContentDependencies,
  Contents,
  keyText,
  type NotRunnable,
  type Runnable,
  type VersionKey,
} from './contents.ts';
import { Delivery, type DeliveryDependencies, type Outcome } from './delivery.ts';
import type { Leases } from './leases.ts';
import type { Lines } from './lines.ts';
import {
  AFTER_MUCH,
  afterSetback,
  ifSwitchedOff,
  postponed,
  whereLost,
  whileDisabled,
  withoutContent,
  withoutEvent,
} from './outcomes.ts';
import { PerProject } from './per-project.ts';
import { Setbacks } from './setbacks.ts';
import { hasRoomFor, type Load } from './shares.ts';

export interface AttemptDependencies
  extends ContentDependencies,
    Omit<DeliveryDependencies, 'keep' | 'secure' | 'hold'> {
  /** Where events are read. */
  readPool: Pool;
  logger: Pick<Logger, 'warn'>;
}

/** Where attempts find out what they need to know, and tell what they came to. */
export interface AttemptSurroundings {
  lines: Lines;
  load: Load;
  leases: Leases;
  /** An invocation has ended, with all others of its batch. */
  finish(row: QueueRow, lease: string, outcome: Outcome): void;
  /** One of a batch has ended, and the others have not. */
  finishOne(row: QueueRow, lease: string, outcome: Outcome): void;
}

/** What was claimed together. */
export interface Claimed {
  rows: readonly QueueRow[];
  lease: string;
  /** Whether it was claimed by the policies of its functions. */
  isGoverned?: boolean;
  /** When rows may be attempted, in milliseconds. Those that it lacks may be at once. */
  startsAt?: ReadonlyMap<QueueRow, number>;
}

type Found = Runnable | NotRunnable;
type EventOf = (row: QueueRow) => FoundEvent | undefined;

interface Prepared {
  /** In the order of the rows. Undefined: it cannot be had at the moment. */
  contents: readonly Promise<Found | undefined>[];
  disabled: ReadonlyMap<string, DisabledFunction>;
  eventOf: EventOf;
}

/** What an attempt came to, for the invocation and all others of its batch that stayed with it. */
interface Ended {
  row: QueueRow;
  outcome: Outcome;
}

/** An invocation or a batch of them that can run. */
interface Ready {
  row: QueueRow;
  event: FoundEvent | null;
  /** The events of a batch. */
  items?: readonly StoredEvent[];
}

const hasPolicy = (found: Found): found is Runnable =>
  !('reason' in found) && (found.paused || found.delivery !== null);

const keyOf = (row: QueueRow): VersionKey => ({
  ...{ projectId: row.project_id, functionId: row.function_id, version: row.version },
});

/** A project whose events had so many characters in one claim is not read together with others the next time. */
const LARGE = 1_000_000;

/**
 * Divides what could not be prepared together: what cannot be read of one project is no reason for others to wait, and neither
 * is one event that cannot be read. One part: it is not worth another try now.
 */
function partsOf(rows: readonly QueueRow[], error: unknown): readonly (readonly QueueRow[])[] {
  const ofProjects = [...Map.groupBy(rows, (row) => row.project_id).values()];
  if (ofProjects.length > 1 || rows.length === 1 || !isOfClass(error, OF_DATA)) return ofProjects;
  const half = Math.ceil(rows.length / 2);
  return [rows.slice(0, half), rows.slice(half)];
}

/**
 * Attempts invocations that were claimed: finds what they need, and runs those that can run. Each of them ends, whatever
 * happens: nobody else takes it before its lease is over.
 */
export class Attempts {
  readonly #deps: AttemptDependencies;
  readonly #around: AttemptSurroundings;
  readonly #contents: Contents;
  /** Versions that could not be had, and invocations that could not be prepared or begun. */
  readonly #setbacks = new Setbacks();
  /** Projects of which much was read the last time. */
  readonly #large = new Set<number>();

  constructor(deps: AttemptDependencies, around: AttemptSurroundings) {
    this.#deps = deps;
    this.#around = around;
    this.#contents = new Contents(deps);
  }

  /** Begins with them. Whoever claimed hears by `finish` what each of them came to. */
  begin(claimed: Claimed): void {
    const over = whereLost(claimed.rows);
    for (const [row, outcome] of over) this.#around.finish(row, claimed.lease, outcome);
    const left = claimed.rows.filter((row) => !over.has(row));
    const groups = Map.groupBy(left, ({ project_id: id }) => (this.#large.has(id) ? id : 'others'));
    for (const rows of groups.values()) void this.#together({ ...claimed, rows });
  }

  async #together(claimed: Claimed): Promise<void> {
    const { rows, lease } = claimed;
    let prepared: Prepared;
    try {
      prepared = await this.#prepare(rows);
    } catch (error) {
      const parts = partsOf(rows, error);
      if (parts.length > 1) {
        for (const some of parts) void this.#together({ ...claimed, rows: some });
        return;
      }
      this.#deps.logger.warn({ err: error }, 'invocations of functions could not be prepared');
      for (const row of rows) {
        this.#setbacks.add(row.id);
        this.#around.finish(row, lease, afterSetback(row, this.#setbacks.of(row.id)));
      }
      return;
    }
    for (const [index, row] of rows.entries()) {
      void this.#attempt(row, claimed, prepared, prepared.contents[index] as Prepared['contents'][number]);
    }
  }

  /** Reads events and functions. */
  async #prepare(rows: readonly QueueRow[]): Promise<Prepared> {
    const { reading } = this.#around.load;
    const projects = [...new Set(rows.map((row) => row.project_id))];
    for (const projectId of projects) reading.add(projectId, 1);
    try {
      const stored = rows.flatMap(allOf).filter((row) => row.event_uuid !== null);
      const keys = stored.map((row) => ({
        ...{ projectId: row.project_id, uuid: row.event_uuid as string },
        timestamp: row.event_timestamp as string,
      }));
      const versions = rows.map(keyOf);
      const [found, contents, disabled] = await Promise.all([
        findEventsAt(this.#deps.readPool, keys),
        this.#contents.of(versions),
        disabledFunctions(this.#deps.pool, projects, WATCHER),
      ]);
      this.#noteLarge(projects, found);
      const events = new Map(found.map((one) => [`${one.project_id}:${one.uuid}`, one]));
      return {
        contents: this.#known(versions.map(keyText), contents),
        disabled,
        eventOf: (row) => events.get(`${row.project_id}:${row.event_uuid}`),
      };
    } finally {
      for (const projectId of projects) reading.add(projectId, -1);
    }
  }

  #noteLarge(projects: readonly number[], found: readonly FoundEvent[]): void {
    const read = new PerProject();
    for (const one of found) read.add(one.project_id, one.unread === null ? sizeOf(one) : LARGE);
    for (const projectId of projects) {
      if (read.of(projectId) >= LARGE) this.#large.add(projectId);
      else this.#large.delete(projectId);
    }
  }

  /** Tells once of each version that cannot be had at the moment. */
  #known(keys: readonly string[], contents: readonly Promise<Found>[]): Promise<Found | undefined>[] {
    const known = new Map<string, Promise<Found | undefined>>();
    for (const [index, key] of keys.entries()) {
      if (!known.has(key)) known.set(key, this.#knownOne(key, contents[index] as Promise<Found>));
    }
    return keys.map((key) => known.get(key) as Promise<Found | undefined>);
  }

  async #knownOne(key: string, content: Promise<Found>): Promise<Found | undefined> {
    try {
      const found = await content;
      this.#setbacks.clear(key);
      return found;
    } catch (error) {
      this.#setbacks.add(key);
      this.#deps.logger.warn({ err: error, version: key }, 'a version of a function could not be prepared');
      return undefined;
    }
  }

  async #attempt(
    row: QueueRow,
    claimed: Claimed,
    prepared: Prepared,
    content: Promise<Found | undefined>,
  ): Promise<void> {
    let result: Ended;
    try {
      result = await this.#ended(row, claimed, prepared, await content);
    } catch (error) {
      this.#deps.logger.warn({ err: error, functionId: row.function_id }, 'an invocation could not be begun');
      this.#setbacks.add(row.id);
      result = { row, outcome: afterSetback(row, this.#setbacks.of(row.id)) };
    }
    this.#around.finish(result.row, claimed.lease, result.outcome);
  }

  async #ended(
    row: QueueRow,
    { lease, isGoverned = false, startsAt }: Claimed,
    { disabled, eventOf }: Prepared,
    found: Found | undefined,
  ): Promise<Ended> {
    const stopped = disabled.get(row.function_id);
    if (stopped) return { row, outcome: whileDisabled(row, stopped) };
    if (!found) return { row, outcome: afterSetback(row, this.#setbacks.of(keyText(keyOf(row)))) };
    if ('reason' in found) return { row, outcome: withoutContent(row, found) };
    if (!isGoverned && hasPolicy(found)) {
      // This process did not know that. The function gets it back as it was, and by its policy the next time.
      this.#around.lines.govern(row.function_id, found);
      return { row, outcome: postponed(row, 0) };
    }
    const over = ifSwitchedOff(row, found);
    if (over) return { row, outcome: over };
    const ready = row.others ? await this.#batch(row, lease, eventOf) : alone(row, eventOf);
    if ('outcome' in ready) return ready;
    const wait = (startsAt?.get(row) ?? 0) - Date.now();
    if (wait > 0) await pause(wait);
    return { row: ready.row, outcome: await this.#run(ready, lease, found) };
  }

  /** Leaves those whose events are gone out of a batch, which end, and those that are too much for one program. */
  async #batch(row: QueueRow, lease: string, eventOf: EventOf): Promise<Ready | Ended> {
    const overOf = (one: QueueRow) => withoutEvent(one, eventOf(one));
    const tooMany = beyondRoom(row, eventOf);
    if (!tooMany) return { row, outcome: postponed(row, AFTER_MUCH) };
    if (tooMany.length > 0) {
      const seqs = tooMany.map(({ seq }) => seq);
      await leaveBatch(this.#deps.pool, seqs, this.#around.leases.leaseOf(row.seq, lease));
      for (const one of tooMany) this.#around.leases.release(one, lease);
      // They are put together anew, with others.
      this.#around.lines.expect({ projectId: row.project_id, functionId: row.function_id }, Date.now());
    }
    const left = allOf(row).filter((one) => !tooMany.includes(one));
    const alive = left.filter((one) => !overOf(one));
    const first = alive.includes(row) ? row : alive[0];
    for (const one of left) {
      const over = overOf(one);
      if (over && (first || one !== row)) this.#around.finishOne(one, lease, over);
    }
    if (!first) return { row: { ...row, others: [] }, outcome: overOf(row) as Outcome };
    const items = alive.flatMap((one) => {
      const event = eventOf(one);
      return event ? [{ ...event, groups: (one.groups ?? null) as StoredEvent['groups'] }] : [];
    });
    const { attempt, progress, batch } = row;
    const others = alive.filter((one) => one !== first);
    return { row: { ...first, attempt, progress, batch, others }, event: eventOf(first) ?? null, items };
  }

  async #run({ row, event, items }: Ready, lease: string, found: Runnable): Promise<Outcome> {
    const { leases, load } = this.#around;
    const keep: DeliveryDependencies['keep'] = async ({ seq, batch }, progress) => {
      const began = performance.now();
      const kept = { seq, progress, lease: leases.leaseOf(seq, lease), seconds: leases.seconds };
      const isOurs = await (batch
        ? keepBatchProgress(this.#deps.pool, { ...kept, batch })
        : keepProgress(this.#deps.pool, kept));
      if (isOurs) leases.extended(row, lease, began);
      return isOurs;
    };
    const secure = () => leases.secure(row, lease);
    let size = 0;
    const take = (more: number) => {
      load.characters.add(row.project_id, more);
      size += more;
    };
    const hold = (bytes: number) => {
      const isRoom = hasRoomFor(load, row.project_id, { bytes, own: size });
      if (isRoom) take(bytes);
      return isRoom;
    };
    const delivery = new Delivery({ ...this.#deps, keep, secure, hold }, row, found, event, items);
    take((items ?? (event ? [event] : [])).reduce((sum, one) => sum + sizeOf(one), 0));
    try {
      return await delivery.run();
    } catch (error) {
      this.#deps.logger.warn({ err: error, functionId: row.function_id }, 'an invocation could not be run');
      return delivery.afterFault();
    } finally {
      take(-size);
    }
  }
}

/** An invocation that goes alone. */
function alone(row: QueueRow, eventOf: EventOf): Ready | Ended {
  const event = eventOf(row) ?? null;
  const over = withoutEvent(row, event);
  return over ? { row, outcome: over } : { row, event };
}
