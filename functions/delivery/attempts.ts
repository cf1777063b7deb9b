import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from '../../db/pool.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { keepBatchProgress, leaveBatch } from '../rows/delivery-batches.ts';
import { type FoundEvent, findEventsAt } from '../rows/events.ts';
import { keepProgress, type QueueRow } from '../rows/queue.ts';
import { type DisabledFunction, disabledFunctions } from '../rows/states.ts';
import type { StoredEvent } from '../rules/stored-event.ts';
import { WATCHER } from '../rules/watcher.ts';
import { allOf, beyondRoom, sizeOf } from './batches.ts';
import { type ContentDependencies, Contents, type NotRunnable, type Runnable } from './contents.ts';
import { Delivery, type DeliveryDependencies, type Outcome } from './delivery.ts';
import type { Lines } from './lines.ts';
import {
  AFTER_ERROR,
  AFTER_MUCH,
  ended,
  ifSwitchedOff,
  postponed,
  whileDisabled,
  withoutEvent,
} from './outcomes.ts';
import { hasRoomFor, type Load } from './shares.ts';

export interface AttemptDependencies
  extends ContentDependencies,
    Omit<DeliveryDependencies, 'keep' | 'hold'> {
  /** Where events are read. */
  readPool: Pool;
  logger: Pick<Logger, 'warn'>;
}

/** Where attempts find out what they need to know, and tell what they came to. */
export interface AttemptSurroundings {
  lines: Lines;
  load: Load;
  /** How long an invocation is ours after its progress was stored, in seconds. */
  leaseSeconds: number;
  /** An invocation has ended, with all others of its batch. */
  finish(row: QueueRow, lease: string, outcome: Outcome): Promise<void>;
  /** One of a batch has ended, and the others have not. */
  finishOne(row: QueueRow, lease: string, outcome: Outcome): void;
}

/** What was claimed together. */
export interface Claimed {
  rows: readonly QueueRow[];
  lease: string;
  /** Whether it was claimed by the policies of its functions. */
  isGoverned?: boolean;
  /** When each of the rows may be attempted, in milliseconds. */
  startsAt?: readonly number[];
}

type Found = Runnable | NotRunnable;
type EventOf = (row: QueueRow) => FoundEvent | undefined;

interface Prepared {
  /** In the order of the rows. */
  contents: readonly Found[];
  disabled: ReadonlyMap<string, DisabledFunction>;
  eventOf: EventOf;
}

const hasPolicy = (found: Found): found is Runnable =>
  !('reason' in found) && (found.paused || found.delivery !== null);

/** Attempts invocations that were claimed: finds what they need, and runs those that can run. */
export class Attempts {
  readonly #deps: AttemptDependencies;
  readonly #around: AttemptSurroundings;
  readonly #contents: Contents;

  constructor(deps: AttemptDependencies, around: AttemptSurroundings) {
    this.#deps = deps;
    this.#around = around;
    this.#contents = new Contents(deps);
  }

  /** Begins with them. Whoever claimed hears by `finish` what each of them came to. */
  async begin({ rows, lease, isGoverned = false, startsAt = [] }: Claimed): Promise<void> {
    const { lines, finish } = this.#around;
    let prepared: Prepared;
    try {
      prepared = await this.#prepare(rows);
    } catch (error) {
      this.#deps.logger.warn({ err: error }, 'invocations of functions could not be prepared');
      for (const row of rows) void finish(row, lease, postponed(row, AFTER_ERROR));
      return;
    }
    const { contents, disabled, eventOf } = prepared;
    for (const [index, row] of rows.entries()) {
      const stopped = disabled.get(row.function_id);
      if (stopped) {
        void finish(row, lease, whileDisabled(row, stopped));
        continue;
      }
      const found = contents[index] as Found;
      if (!isGoverned && hasPolicy(found)) {
        // This process did not know that. The function gets it back as it was, and by its policy the next time.
        lines.govern(row.function_id, found);
        void finish(row, lease, postponed(row, 0));
        continue;
      }
      const over = ifSwitchedOff(row, found);
      if (over) void finish(row, lease, over);
      else if (row.others) void this.#batch(row, lease, found, eventOf, startsAt[index]);
      else void this.#one(row, lease, found, eventOf(row) ?? null, startsAt[index]);
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
      const versions = rows.map((row) => ({
        ...{ projectId: row.project_id, functionId: row.function_id, version: row.version },
      }));
      const [found, contents, disabled] = await Promise.all([
        findEventsAt(this.#deps.readPool, keys),
        this.#contents.of(versions),
        disabledFunctions(this.#deps.pool, projects, WATCHER),
      ]);
      const events = new Map(found.map((one) => [`${one.project_id}:${one.uuid}`, one]));
      return { contents, disabled, eventOf: (row) => events.get(`${row.project_id}:${row.event_uuid}`) };
    } finally {
      for (const projectId of projects) reading.add(projectId, -1);
    }
  }

  /** Runs a batch. Those whose events are gone end, and those that are too much for one program wait for another batch. */
  async #batch(
    row: QueueRow,
    lease: string,
    found: Found,
    eventOf: EventOf,
    startsAt: number | undefined,
  ): Promise<void> {
    const { finish, finishOne } = this.#around;
    try {
      const overOf = (one: QueueRow) => withoutEvent(one, eventOf(one));
      const tooMany = beyondRoom(row, eventOf);
      if (!tooMany) {
        await finish(row, lease, postponed(row, AFTER_MUCH));
        return;
      }
      if (tooMany.length > 0) {
        const seqs = tooMany.map(({ seq }) => seq);
        await leaveBatch(this.#deps.pool, seqs, lease);
      }
      const left = allOf(row).filter((one) => !tooMany.includes(one));
      const alive = left.filter((one) => !overOf(one));
      const first = alive.includes(row) ? row : alive[0];
      for (const one of left) {
        const over = overOf(one);
        if (over && (first || one !== row)) finishOne(one, lease, over);
      }
      if (!first) {
        await finish({ ...row, others: [] }, lease, overOf(row) as Outcome);
        return;
      }
      const items = alive.flatMap((one) => {
        const event = eventOf(one);
        return event ? [{ ...event, groups: (one.groups ?? null) as StoredEvent['groups'] }] : [];
      });
      const { attempt, progress, batch } = row;
      const others = alive.filter((one) => one !== first);
      const standing = { ...first, attempt, progress, batch, others };
      await this.#one(standing, lease, found, eventOf(first) ?? null, startsAt, items);
    } catch (error) {
      this.#deps.logger.warn({ err: error }, 'a batch of invocations could not be prepared');
      await finish(row, lease, postponed(row, AFTER_ERROR));
    }
  }

  async #one(
    row: QueueRow,
    lease: string,
    found: Found,
    event: FoundEvent | null,
    startsAt: number | undefined,
    items?: readonly StoredEvent[],
  ): Promise<void> {
    let outcome: Outcome;
    if (startsAt !== undefined && startsAt > Date.now()) await pause(startsAt - Date.now());
    const over = withoutEvent(row, event);
    if ('reason' in found) outcome = ended(found.status, found.reason);
    else if (over) outcome = over;
    else outcome = await this.#run(row, lease, found, event, items);
    await this.#around.finish(row, lease, outcome);
  }

  async #run(
    row: QueueRow,
    lease: string,
    found: Runnable,
    event: FoundEvent | null,
    items: readonly StoredEvent[] | undefined,
  ): Promise<Outcome> {
    const { leaseSeconds: seconds, load } = this.#around;
    const keep: DeliveryDependencies['keep'] = ({ seq, batch }, progress) =>
      batch
        ? keepBatchProgress(this.#deps.pool, { seq, batch, lease, progress, seconds })
        : keepProgress(this.#deps.pool, { seq, lease, progress, seconds });
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
    take((items ?? (event ? [event] : [])).reduce((sum, one) => sum + sizeOf(one), 0));
    try {
      return await new Delivery({ ...this.#deps, keep, hold }, row, found, event, items).run();
    } catch (error) {
      this.#deps.logger.warn({ err: error, functionId: row.function_id }, 'an invocation could not be run');
      return postponed(row, AFTER_ERROR);
    } finally {
      take(-size);
    }
  }
}
