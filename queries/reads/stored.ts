import { type EventRow, type EventSourceQuery, roomySql, SOURCE_COLUMNS } from '../../db/events.ts';
import type { Pool } from '../../db/pool.ts';
import { reading } from '../../db/reading.ts';
import { ofProject } from '../../db/roles/project-setting.ts';
import type { Asker } from '../../db/turns.ts';

/** A place in the order in which events were stored. Events of one transaction have the same time. */
export interface StoredPlace {
  /** In ISO 8601. */
  at: string;
  uuid: string;
}

const LAST_UUID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The place behind all events that were stored up to an instant. */
export const behind = (at: string): StoredPlace => ({ at, uuid: LAST_UUID });

/** Which of the events behind a place: those that were stored up to a horizon. */
export interface StoredSpan {
  from: StoredPlace;
  /** In ISO 8601. Nothing is stored up to there any more. */
  upTo: string;
}

/**
 * The first part of a span. No index has the order of storing, so reading the first events of a span looks at all of it. That
 * takes long where many were stored, if the span is long.
 */
export function firstPart(span: StoredSpan, milliseconds: number): StoredSpan {
  const end = Date.parse(span.from.at) + milliseconds;
  return end < Date.parse(span.upTo) ? { ...span, upTo: new Date(end).toISOString() } : span;
}

export interface StoredPage {
  rows: (EventRow & { inserted_at: string })[];
  /** Whether more events of the span follow. */
  isFollowed: boolean;
}

const ORDER = 'order by inserted_at, uuid';

/** The events of a source in a span. The times alone find them in the index; they stand where the planner sees them. */
function spanSql({ text }: EventSourceQuery, span: StoredSpan, given: (value: unknown) => string): string {
  const { from, upTo } = span;
  const at = `${given(from.at)}::timestamptz`;
  return `(${text}) as found (${SOURCE_COLUMNS})
    where inserted_at >= ${at} and inserted_at <= ${given(upTo)}::timestamptz
      and (inserted_at > ${at} or uuid > ${given(from.uuid)}::uuid)`;
}

/** Reads events in the order in which they were stored, as the role that sees one project. */
export function readStored(
  reader: Pool,
  asker: Asker,
  source: EventSourceQuery,
  span: StoredSpan,
  bounds: { limit: number; room: number },
): Promise<StoredPage> {
  const values: unknown[] = [...source.values];
  const given = (value: unknown) => `$${values.push(value)}`;
  const sql = roomySql({ from: spanSql(source, span, given), order: ORDER }, bounds, given);
  return inProject(reader, asker, sql, values, (found) => ({
    rows: found as unknown as StoredPage['rows'],
    isFollowed: found.at(-1)?.followed === true,
  }));
}

/** So many events were stored up to an instant, behind those of the page before it. */
export interface PageBounds {
  /** In ISO 8601. */
  upTo: string;
  events: number;
}

/**
 * Divides a span into pages of about `size` events, in one look at it. No index has the order of storing, so a page that is read
 * within such bounds sorts only itself. Events of one transaction are never divided.
 */
export function storedPages(
  reader: Pool,
  asker: Asker,
  source: EventSourceQuery,
  span: StoredSpan,
  size: number,
): Promise<PageBounds[]> {
  const values: unknown[] = [...source.values];
  const given = (value: unknown) => `$${values.push(value)}`;
  const from = spanSql(source, span, given);
  const sql = `select max(inserted_at) as "upTo", sum(events)::bigint as events from (
      select inserted_at, events, (sum(events) over (order by inserted_at) - events)::bigint / ${given(size)}::bigint as page
      from (select inserted_at, count(*) as events from ${from} group by inserted_at) as stamps) as pages
    group by page order by page`;
  return inProject(reader, asker, sql, values, (found) => found as unknown as PageBounds[]);
}

const inProject = <T>(
  reader: Pool,
  asker: Asker,
  sql: string,
  values: unknown[],
  read: (rows: Record<string, unknown>[]) => T,
): Promise<T> =>
  reading(
    reader,
    asker,
    async (client) => read((await client.query(sql, values)).rows),
    ofProject(asker.projectId),
  );
