import { createHash } from 'node:crypto';
import { EVENT_TIME } from './event-ids.ts';
import {
  countWeeks,
  nearestEdges,
  type SealedWeek,
  type StoredRange,
  sealedWeeks,
  storedRanges,
} from './event-spans.ts';
import { distinctIdsOf } from './persons.ts';
import type { Pool, Transaction } from './pool.ts';
import { PAGE_BYTES, reading } from './reading.ts';
import { ofProject } from './roles/project-setting.ts';
import { isoForPostgres } from './timestamptz.ts';
import type { Asker } from './turns.ts';

export interface EventRow {
  uuid: string;
  event: string;
  distinct_id: string;
  /** As JSON. Parsing them, only to write them again, would take long for large ones. */
  properties: string;
  timestamp: string;
  elements_chain: string;
}

/** A position in the order of events. Everything before it was read. */
export interface EventPosition {
  timestamp: string;
  uuid: string;
}

export interface EventQuery {
  projectId: number;
  event?: string | undefined;
  distinctId?: string | undefined;
  /** Only events of this person: by its distinct ids, or by the person's id in the event if it has no distinct ids. */
  personId?: string | undefined;
  /** Only events after and before these instants, in ISO 8601. */
  after?: string | undefined;
  before?: string | undefined;
  /** Continues after this event. */
  position?: EventPosition | undefined;
  ascending: boolean;
  limit: number;
  offset: number;
  /**
   * A SELECT of the events of this project that pass further conditions. It is compiled from texts of users, so the connections
   * are those of the role that sees one project.
   */
  source?: EventSourceQuery | undefined;
  /** What is known of the weeks that are over. The connections of a source cannot read it. */
  weeks?: readonly SealedWeek[];
}

export interface EventPage {
  rows: EventRow[];
  /** The last event of the page, if there are more. */
  next: EventPosition | undefined;
}

/** A SELECT of events with the columns of a source, in this order. Its values come first among those of a statement. */
export interface EventSourceQuery {
  text: string;
  values: readonly (string | string[])[];
}

/** The columns of a source, in this order. */
export const SOURCE_COLUMNS = 'uuid, event, distinct_id, properties, timestamp, elements_chain, inserted_at';
const ROWS_AT_ONCE = 100;
/** A page that takes longer ends with what it has. */
const PAGE_MILLISECONDS = 15_000;
/** How many times its own size an elements_chain takes in an answer, because its elements are shown as objects too. */
const CHAIN_WEIGHT = 8;

/** An event of a page that ends where there is no more room. */
export interface Measured extends EventRow {
  inserted_at: string;
  bytes: number;
  /** Whether another event follows. */
  followed: boolean;
}

/**
 * A statement that reads the first events of a relation in some order, up to the one for which there is no more room. A single
 * event may have 20 MB, so Postgres itself leaves out what comes after the most bytes. `given` takes a value of the statement
 * and returns its place.
 */
export function roomySql(
  { from, order }: { from: string; order: string },
  { limit, room, offset = 0 }: { limit: number; room: number; offset?: number },
  given: (value: unknown) => string,
): string {
  // One more row than wanted tells whether there are more.
  return `select uuid, event, distinct_id, properties::text as properties, timestamp, elements_chain, inserted_at, bytes, followed from (
       select *, sum(bytes) over (${order} rows unbounded preceding) - bytes as before,
         lead(uuid) over (${order}) is not null as followed, row_number() over (${order}) as number
       from (
         select uuid, event, distinct_id, properties, timestamp, elements_chain, inserted_at,
           octet_length(properties::text) + ${CHAIN_WEIGHT} * octet_length(elements_chain) as bytes
         from ${from} ${order} limit ${given(limit + 1)} offset ${given(offset)}) as first) as measured
     where number <= ${given(limit)} and before <= ${given(room)} ${order}`;
}

/** A part of the times of a page. In milliseconds since 1970. */
interface Part {
  since: number | undefined;
  until: number | undefined;
  /** When its events can have come in. Undefined: at any time. */
  stored: readonly StoredRange[] | undefined;
  /** Whether Postgres keeps the plan. Only for few texts: a plan for three years takes 2 MB of a connection. */
  keepsPlan: boolean;
}

/** Reads at most `limit` events, up to the one for which there is no more room. Nothing else is sent by Postgres. */
async function readSome(
  client: Transaction,
  query: EventQuery,
  distinctIds: readonly string[],
  { limit, room, part: { since, until, stored, keepsPlan } }: { limit: number; room: number; part: Part },
): Promise<Measured[]> {
  const values: unknown[] = [...(query.source?.values ?? [])];
  const given = (value: unknown) => `$${values.push(value)}`;
  const conditions = query.source ? [] : [`project_id = ${given(query.projectId)}`];
  const from = query.source ? `(${query.source.text}) as found (${SOURCE_COLUMNS})` : 'events';
  const { event, distinctId, personId, after, before, position, ascending } = query;
  if (event !== undefined) conditions.push(`event = ${given(event)}`);
  if (distinctId !== undefined) conditions.push(`distinct_id = ${given(distinctId)}`);
  if (personId !== undefined) conditions.push(ofPerson(personId, distinctIds, given));
  const instant = (iso: string) => `${given(isoForPostgres(iso))}::timestamptz`;
  if (after !== undefined) conditions.push(`timestamp > ${instant(after)}`);
  if (before !== undefined) conditions.push(`timestamp < ${instant(before)}`);
  if (since !== undefined) conditions.push(`timestamp >= ${instant(new Date(since).toISOString())}`);
  if (until !== undefined) conditions.push(`timestamp < ${instant(new Date(until).toISOString())}`);
  if (stored) conditions.push(storedCondition(stored, given));
  if (position) {
    const place = `(${instant(position.timestamp)}, ${given(position.uuid)}::uuid)`;
    conditions.push(`(timestamp, uuid) ${ascending ? '>' : '<'} ${place}`);
  }
  const direction = ascending ? 'asc' : 'desc';
  const order = `order by timestamp ${direction}, uuid ${direction}`;
  const where = `${from} where ${conditions.join(' and ') || 'true'}`;
  const bounds = { limit, room, offset: query.offset };
  const text = roomySql({ from: where, order }, bounds, given);
  const { rows } = await client.query({ text, values, ...(keepsPlan && { name: nameOf(text) }) });
  return rows;
}

/** The condition for the events of a person. Those of a single distinct id come from the indexes in their order. */
function ofPerson(
  personId: string,
  distinctIds: readonly string[],
  given: (value: unknown) => string,
): string {
  const [one, ...others] = distinctIds;
  if (one === undefined) return `person_id = ${given(personId)}`;
  return others.length === 0 ? `distinct_id = ${given(one)}` : `distinct_id = any(${given(distinctIds)})`;
}

const nameOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32);

/**
 * Reads a page of events in the order of (timestamp, uuid). Readers who continue from `next` see each event once,
 * however many share a timestamp and whatever is stored meanwhile.
 */
export async function listEvents(
  readingPool: Pool,
  query: EventQuery,
  signal?: AbortSignal,
): Promise<EventPage> {
  const { projectId, personId } = query;
  const read = async (client: Transaction): Promise<EventPage> => {
    const end = performance.now() + PAGE_MILLISECONDS;
    const distinctIds = personId === undefined ? [] : await distinctIdsOf(client, projectId, personId);
    const rows: EventRow[] = [];
    let bytes = 0;
    let isFull = false;
    const weeks = query.weeks ?? (query.source ? [] : await sealedWeeks(client, projectId, readingPool));
    for (const part of partsOf(query, weeks)) {
      if (part.keepsPlan) await client.query('set local plan_cache_mode = force_generic_plan');
      for (;;) {
        // Of a page that is full, it only wants to know whether there are more.
        const [limit, room] = isFull
          ? [1, PAGE_BYTES]
          : [Math.min(query.limit - rows.length, ROWS_AT_ONCE), PAGE_BYTES - bytes];
        const last = rows.at(-1);
        const rest = last ? { ...query, offset: 0, position: positionOf(last) } : query;
        const some = await readSome(client, rest, distinctIds, { limit, room, part });
        if (isFull && some.length > 0) return { rows, next: positionOf(last as EventRow) };
        for (const { bytes: size, followed: _, inserted_at: __, ...row } of some) {
          rows.push(row);
          bytes += size;
        }
        isFull =
          rows.length > 0 && (rows.length === query.limit || bytes > PAGE_BYTES || performance.now() > end);
        const newest = some.at(-1);
        if (!newest?.followed) break;
        if (isFull) return { rows, next: positionOf(newest) };
      }
    }
    return { rows, next: undefined };
  };
  return reading(readingPool, { projectId, signal }, read, query.source && ofProject(projectId));
}

/** With events in more weeks, planning takes longer than reading the few events of a person. */
const MANY_WEEKS = 20;

/** Whether a page is of one person or distinct id, and as far back as there are events. Such pages have few texts. */
const isOfOne = ({ source, event, distinctId, personId, after }: EventQuery): boolean =>
  (distinctId !== undefined || personId !== undefined) &&
  [source, event, after].every((one) => one === undefined);

/** Divides the times of a page into parts. One is read if those before have too few events. */
function partsOf(query: EventQuery, weeks: readonly SealedWeek[]): Part[] {
  const { personId, after, before, position, ascending, offset } = query;
  const times = between(
    [after, ...(ascending ? [position?.timestamp] : [])],
    [before, ...(ascending ? [] : [position?.timestamp])],
  );
  const isOne = isOfOne(query);
  // What an offset skips in one part is not known in the next one. A person has few events, so all parts would be read, and planned for.
  const isWhole = offset > 0 || (personId !== undefined && !isOne);
  const edges = isWhole ? [] : nearestEdges(weeks, times, ascending ? 'first' : 'last');
  // Who has many events fills a page from the first part. The plan of the second one is kept.
  const used = isOne ? edges.slice(0, 1) : edges;
  return [undefined, ...used].map((edge, index) => {
    const next = used[index];
    const [since, until] = ascending ? [edge, next] : [next, edge];
    const within = { from: since ?? times.from, to: until ?? times.to };
    const keepsPlan = isOne && edge !== undefined && countWeeks(weeks, within) > MANY_WEEKS;
    return { since, until, stored: keepsPlan ? undefined : storedRanges(weeks, within), keepsPlan };
  });
}

/** Returns a range with all instants that are behind all of some instants, and before all of others. */
function between(from: readonly (string | undefined)[], to: readonly (string | undefined)[]) {
  const known = (texts: readonly (string | undefined)[]) =>
    texts
      .filter((one) => one !== undefined)
      .map((one) => Date.parse(one))
      .filter(Number.isFinite);
  // Instants have more digits than milliseconds.
  return { from: Math.max(-Infinity, ...known(from)) - 1, to: Math.min(Infinity, ...known(to)) + 1 };
}

/** Builds the condition that events came in at one of these times. */
const storedCondition = (ranges: readonly StoredRange[], given: (value: unknown) => string): string => {
  const instant = (at: number) => `${given(new Date(at).toISOString())}::timestamptz`;
  const tests = ranges.map(({ from, to }) =>
    [
      ...(from === null ? [] : [`inserted_at >= ${instant(from)}`]),
      ...(to === null ? [] : [`inserted_at < ${instant(to)}`]),
    ].join(' and '),
  );
  return `(${tests.map((one) => `(${one || 'true'})`).join(' or ')})`;
};

const positionOf = ({ timestamp, uuid }: EventRow): EventPosition => ({ timestamp, uuid });

/** Finds an event by its uuid. Its id leads to its timestamp, because no index of events begins with the uuid. */
export async function findEvent(
  readingPool: Pool,
  { projectId, signal }: Asker,
  uuid: string,
): Promise<EventRow | undefined> {
  return reading(readingPool, { projectId, signal }, async (client) => {
    const { rows: ids } = await client.query(`select ${EVENT_TIME} as timestamp`, [projectId, uuid]);
    if (ids[0].timestamp === null) return undefined;
    const { timestamp } = ids[0];
    const values: unknown[] = [projectId, uuid, timestamp];
    const weeks = await sealedWeeks(client, projectId, readingPool);
    const stored = storedRanges(weeks, between([timestamp], [timestamp]));
    const ranges = stored ? ` and ${storedCondition(stored, (value) => `$${values.push(value)}`)}` : '';
    const { rows } = await client.query(
      `select uuid, event, distinct_id, properties::text as properties, timestamp, elements_chain
       from events where project_id = $1 and timestamp = $3 and uuid = $2${ranges}`,
      values,
    );
    return rows[0];
  });
}
