import { summarizeNewest } from '../db/event-partitions.ts';
import { followHorizon } from '../db/horizon.ts';
import {
  type Carried,
  type Carrier,
  type CopyingEvent,
  carryInto,
  countEvents,
  keepCarried,
  type LockedPerson,
  readCopyingEvents,
  uncarried,
} from '../db/person-carrying.ts';
import type { Pool } from '../db/pool.ts';
import { propertiesText } from './ingest/event-row.ts';
import { addLayer, type Layer, latestOf } from './persons/copied.ts';
import { idKey, MOST_PROPERTIES } from './persons/people.ts';
import { COPIED_PROPERTIES, copiedOf, SILENT_EVENTS } from './persons/update.ts';

interface Stop {
  signal: AbortSignal;
  beat(): void;
}

export interface CarryLimits {
  /** Events are read from when the oldest one is so many milliseconds old: a visit then changes its person once, not with each page. */
  patience: number;
  /** How many events are read in one go, besides those that were stored at the same moment. Fewer do not have to wait. */
  events: number;
  /** How much of what was read may wait to be written. */
  bytes: number;
  /** How many persons are changed in one transaction. */
  persons: number;
  /** How many milliseconds old the horizon may be. Exports move it too. */
  horizon: number;
}

const LIMITS: CarryLimits = {
  patience: 4 * 60_000,
  events: 20_000,
  bytes: 64 * 1024 * 1024,
  persons: 500,
  horizon: 30_000,
};
/** Parts of time, as the horizon counts: microseconds. Events of one transaction are in one part. */
const MILLISECOND = 1_000;
const FIRST_PART = 10_000 * MILLISECOND;
const SHORTEST_PART = 1;
const LOCK_TIMEOUT = 2_000;
const WANTED = { names: COPIED_PROPERTIES, silent: SILENT_EVENTS };
/** About how much a layer takes besides its properties. */
const OVERHEAD = 300;

/** What the events of a distinct id brought. */
interface Waiting extends Carrier {
  layers: Layer[];
}

/** What was read and is not yet written. */
class Collected {
  readonly byId = new Map<string, Waiting>();
  bytes = 0;

  add({ project_id: projectId, distinct_id: distinctId, stamp, at, properties }: CopyingEvent): void {
    const values = copiedOf(JSON.parse(properties));
    if (!values) return;
    const layer = { stamp, at, values, bytes: OVERHEAD + properties.length };
    const key = idKey(projectId, distinctId);
    let own = this.byId.get(key);
    if (!own) {
      own = { projectId, distinctId, layers: [] };
      this.byId.set(key, own);
      this.bytes += OVERHEAD;
    }
    this.bytes += addLayer(own.layers, layer);
  }

  clear(): void {
    this.byId.clear();
    this.bytes = 0;
  }
}

/** What of some distinct ids goes into their persons. Several of them may have the same person. */
function decisionOf(part: readonly Waiting[], persons: readonly (LockedPerson | undefined)[]): Carried[] {
  const byPerson = new Map<string, { projectId: number; person: LockedPerson; layers: Layer[] }>();
  for (const [index, { projectId, layers }] of part.entries()) {
    const person = persons[index];
    if (!person) continue;
    const key = idKey(projectId, person.id);
    const own = byPerson.get(key) ?? { projectId, person, layers: [] };
    byPerson.set(key, own);
    // What was stored before the distinct id came to this person belonged to another one, who was merged or deleted.
    for (const layer of layers) {
      if (layer.stamp >= person.since) addLayer(own.layers, { ...layer, values: { ...layer.values } });
    }
  }
  const carried: Carried[] = [];
  for (const { projectId, person, layers } of byPerson.values()) {
    const values = latestOf(layers, person.namedAt);
    if (values) carried.push({ projectId, id: person.id, values: propertiesText(values) });
  }
  return carried;
}

/**
 * Carries the copied properties of new events into their persons, in the order of the events. Returns how many persons changed.
 *
 * Any number of processes may do this at the same time, and each may be killed at any moment: nothing counts as carried before it
 * is committed, whoever was overtaken writes nothing more, and what is carried twice ends the same.
 */
export async function carryCopied(
  pool: Pool,
  { signal, beat }: Stop,
  limits: Partial<CarryLimits> = {},
): Promise<number> {
  const { patience, events: most, bytes, persons, horizon } = { ...LIMITS, ...limits };
  // Up to there nobody stores an event any more, even if the clock is set back.
  const closed = await followHorizon(pool, { every: horizon, lockTimeout: LOCK_TIMEOUT });
  if (closed === undefined) return 0;
  const all = await uncarried(pool, closed);
  if (all.to <= all.from) return 0;
  // Otherwise each part would look at everything that was stored lately.
  await summarizeNewest(pool, new Date());
  const isRipe = all.to - all.from >= patience * MILLISECOND;
  if (!isRipe && (await countEvents(pool, all, most + 1)) > most) return 0;

  let through = all.from;
  const collected = new Collected();
  let changed = 0;
  /** Writes what was collected. Returns false if another process was faster. */
  const write = async (to: number): Promise<boolean> => {
    const waiting = [...collected.byId.values()];
    collected.clear();
    for (let at = 0; at < waiting.length; at += persons) {
      signal.throwIfAborted();
      beat();
      const part = waiting.slice(at, at + persons);
      const some = await carryInto(pool, through, part, (found) => decisionOf(part, found), MOST_PROPERTIES);
      if (some === undefined) return false;
      changed += some;
    }
    const isKept = await keepCarried(pool, { from: through, to });
    through = to;
    return isKept;
  };

  let length = FIRST_PART;
  for (let from = all.from; from < all.to; ) {
    signal.throwIfAborted();
    beat();
    const range = { from, to: Math.min(from + length, all.to) };
    const count = await countEvents(pool, range, most + 1);
    if (count > most && length > SHORTEST_PART) {
      length = Math.max(SHORTEST_PART, Math.floor(length / 4));
      continue;
    }
    if (count > 0) {
      await readCopyingEvents(pool, range, WANTED, (rows) => {
        beat();
        for (const row of rows) collected.add(row);
      });
    }
    if (count < most / 4) length *= 2;
    from = range.to;
    if (collected.bytes > bytes && !(await write(from))) return changed;
  }
  if (through < all.to) await write(all.to);
  return changed;
}
