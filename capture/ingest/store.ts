import type { CopySink } from '../../db/copy-in.ts';
import {
  isKnownId,
  type Opened,
  openWithNewIds,
  openWithSomeNewIds,
  writeEventsAndCommit,
} from '../../db/event-writes.ts';
import { eachInTurns, nextTurn } from '../../db/loop-turns.ts';
import type { Transaction } from '../../db/pool.ts';
import { uuidText } from '../../db/uuid-bytes.ts';
import { storableTime } from '../captured-event.ts';
import type { EventFollower, Look } from '../follower.ts';
import type { PersonNotice } from '../persons/notice.ts';
import { recycle } from './copy-bytes.ts';
import {
  compareUuids,
  EVENT_KEY_BYTES,
  EventRows,
  IdRows,
  MANY,
  type PendingEvent,
  type PersonOfEvent,
  type PreparedEvents,
  uuidOf,
  writeKey,
} from './event-row.ts';
import type { EarlyLook } from './person-reader.ts';
import type { PersonChanges, PersonRule } from './persons.ts';

/** After so many rows, writing waits until Postgres has taken enough of them. */
const SLICE = 500;
/** After a transaction with known ids, so many further ones expect known ids: a client that resends sends more. */
const WARY = 16;

function compareKeys(a: PendingEvent, b: PendingEvent): number {
  return a.projectId - b.projectId || compareUuids(a.head, b.head);
}

/** The events to store, as one request or several have brought them. */
type Given = Pick<PreparedEvents, 'events' | 'sorted'>;

/** The events in the order of their keys. Of equal keys the first event stays; the others go into `duplicates`. */
function distinctInOrder(given: Given, duplicates: Set<PendingEvent>): PendingEvent[] {
  // Sorting is stable, so of equal keys the event that came first stays first.
  const sorted = given.sorted ? [...given.sorted] : [...given.events].sort(compareKeys);
  let kept = 0;
  for (let index = 0; index < sorted.length; index += 1) {
    const one = sorted[index] as PendingEvent;
    if (kept > 0 && compareKeys(sorted[kept - 1] as PendingEvent, one) === 0) duplicates.add(one);
    else sorted[kept++] = one;
  }
  sorted.length = kept;
  return sorted;
}

interface Rows {
  write(event: PendingEvent, index: number): void;
  end(): void;
}

/** Writes the rows of a COPY. Between the slices of many, it waits for room, and others have their turn. */
export function inSlices(events: readonly PendingEvent[], sink: CopySink, rows: Rows): void | Promise<void> {
  const slice = (from: number): number => {
    const to = Math.min(from + SLICE, events.length);
    for (let at = from; at < to; at += 1) rows.write(events[at]!, at);
    return to;
  };
  const rest = async (from: number) => {
    for (let at = from; at < events.length; ) {
      await sink.room();
      if (at % MANY === 0) await nextTurn();
      at = slice(at);
    }
    rows.end();
  };
  const at = slice(0);
  if (at < events.length) return rest(at);
  rows.end();
}

export interface Stored {
  /** Events that were stored before, or came twice. */
  duplicates: ReadonlySet<PendingEvent>;
  /** Changes of persons or groups that an event asked for and that were not made. */
  notices: ReadonlyMap<PendingEvent, readonly PersonNotice[]>;
  persons: PersonChanges;
}

type Written = Omit<Stored, 'duplicates'>;

/** Stores the events in one transaction, each (project, uuid) once. */
type StoreEvents = (client: Transaction, given: Given) => Promise<Stored>;

const NO_NOTICES: ReadonlyMap<PendingEvent, readonly PersonNotice[]> = new Map();
const NO_CHANGES: PersonChanges = { created: 0, changed: 0, merged: 0 };

/** If more than this part of the events is wanted, all of them are noted: reading them together costs less. */
const MANY_WANTED = 0.25;

interface Note {
  statement: string;
  /** Whether somebody waits for the events. */
  isWanted: boolean;
}

/** Writes the statement that notes the events of projects that are followed. Undefined: there is nothing to note. */
function noteOf(
  follower: EventFollower,
  events: readonly PendingEvent[],
  persons: readonly PersonOfEvent[],
  answer: string | null,
): Note | undefined {
  if (answer === null) return undefined;
  const following = follower.read(answer);
  const followed: PendingEvent[] = [];
  const wanted: PendingEvent[] = [];
  const unwanted: Look[] = [];
  for (const [index, one] of events.entries()) {
    // Functions do not see what somebody imports.
    if (one.event.historical || !following.follows(one.projectId)) continue;
    followed.push(one);
    const { look } = one;
    if (look && following.isUnwanted(look, persons[index] as PersonOfEvent)) unwanted.push(look);
    else wanted.push(one);
  }
  if (followed.length === 0) return undefined;
  const isWhole = wanted.length > followed.length * MANY_WANTED;
  const noted = isWhole ? followed : wanted;
  const keys = Buffer.allocUnsafe(noted.length * EVENT_KEY_BYTES);
  for (const [index, { head }] of noted.entries()) writeKey(head, keys, index * EVENT_KEY_BYTES);
  const statement = following.note({
    ...{ projects: [...new Set(followed.map((one) => one.projectId))], count: noted.length },
    ...{ keys: keys.toString('hex'), isWhole, unwanted: isWhole ? [] : unwanted },
  });
  return statement === undefined ? undefined : { statement, isWanted: noted.length > 0 };
}

export function createStore(rule: PersonRule, follower?: EventFollower): StoreEvents {
  let wary = 0;

  const questionOf = (events: readonly PendingEvent[]) =>
    follower?.question([...new Set(events.map((one) => one.projectId))]);

  async function write(
    client: Transaction,
    events: readonly PendingEvent[],
    { stamp, answer }: Opened,
    asked?: EarlyLook,
  ): Promise<Written> {
    if (events.length > MANY) await nextTurn();
    const resolved = await rule.resolve(client, events, stamp.readBigInt64BE().toString(), asked);
    const { persons } = resolved;
    const feed = (sink: CopySink): void | Promise<void> => {
      const rows = new EventRows(stamp, (chunk) => sink.write(chunk, recycle));
      return inSlices(events, sink, {
        write: (event, index) => rows.write(event, persons[index]!),
        end: () => rows.end(),
      });
    };
    const note = follower && noteOf(follower, events, persons, answer);
    try {
      await writeEventsAndCommit(client, feed, note?.statement);
      if (note?.isWanted) follower?.committed();
      return { notices: resolved.notices, persons: resolved.committed() };
    } finally {
      resolved.ended();
    }
  }

  /** The usual case: all events are new. If one is not, stores nothing and returns undefined. */
  async function storeNew(
    client: Transaction,
    keys: readonly PendingEvent[],
    events: readonly PendingEvent[],
  ): Promise<Written | undefined> {
    let opened: Opened;
    const asked = rule.askEarly(events);
    const ids = (sink: CopySink) => inSlices(keys, sink, new IdRows((chunk) => sink.write(chunk, recycle)));
    try {
      opened = await openWithNewIds(client, ids, { next: asked?.next, question: questionOf(events) });
    } catch (error) {
      if (!isKnownId(error)) throw error;
      await client.query('rollback');
      return undefined;
    }
    return write(client, events, opened, asked);
  }

  return async (client, given) => {
    const { events } = given;
    const duplicates = new Set<PendingEvent>();
    const keys = distinctInOrder(given, duplicates);
    if (events.length > MANY) await nextTurn();
    const candidates = duplicates.size === 0 ? events : events.filter((one) => !duplicates.has(one));
    if (wary > 0) wary -= 1;
    else {
      const written = await storeNew(client, keys, candidates);
      if (written) return { duplicates, ...written };
      wary = WARY;
    }

    const { fresh, ...opened } = await openWithSomeNewIds(
      client,
      keys,
      ({ projectId, head, event }) => ({
        ...{ projectId, uuid: uuidText(uuidOf(head)) },
        timestamp: storableTime(event),
      }),
      questionOf(candidates),
    );
    const survivors: PendingEvent[] = [];
    await eachInTurns(candidates, MANY, (one) => {
      if (fresh.has(`${one.projectId}:${uuidText(uuidOf(one.head))}`)) survivors.push(one);
      else duplicates.add(one);
    });
    if (survivors.length < candidates.length) wary = WARY;
    if (survivors.length > 0) return { duplicates, ...(await write(client, survivors, opened)) };
    await client.query('rollback');
    return { duplicates, notices: NO_NOTICES, persons: NO_CHANGES };
  };
}
