import { int4Array, jsonbArray, textArray, uuidArray } from './binary-arrays.ts';
import { instantOf, microsecondsOf, takeStamp } from './horizon.ts';
import { type Pool, type Queryable, type Transaction, transaction } from './pool.ts';

/** A range of events by their time of the horizon, in microseconds since 2000: from `from` on, and before `to`. */
export interface Range {
  from: number;
  to: number;
}

/** The range of the events whose copied properties are not carried into persons yet, up to the horizon. */
export async function uncarried(pool: Pool, horizon: string): Promise<Range> {
  await pool.query(
    `insert into person_carrying (through) values ('2000-01-01 00:00:00+00') on conflict do nothing`,
  );
  const { rows } = await pool.query(
    `select ${microsecondsOf('through')}::float8 as from, ${microsecondsOf('$1::timestamptz')}::float8 + 1 as to from person_carrying`,
    [horizon],
  );
  return rows[0];
}

/** How many seconds ago the events were stored that persons have the copied properties of. Null: no event was ever stored. */
export async function secondsBehind(queryable: Queryable): Promise<number | null> {
  const { rows } = await queryable.query(
    `select extract(epoch from clock_timestamp() - through)::float8 as seconds from person_carrying`,
  );
  return rows[0] ? Math.max(0, rows[0].seconds) : null;
}

const INSIDE = `inserted_at >= ${instantOf('$1::bigint')} and inserted_at < ${instantOf('$2::bigint')}`;

/** Counts the events of a range, up to `most`. */
export async function countEvents(pool: Pool, { from, to }: Range, most: number): Promise<number> {
  const { rows } = await pool.query(
    `select count(*)::int as events from (select from events where ${INSIDE} limit $3) as counted`,
    [from, to, most],
  );
  return rows[0].events;
}

/** A stored event, as far as it matters for what is copied into its person. */
export interface CopyingEvent {
  project_id: number;
  distinct_id: string;
  /** Its inserted_at: microseconds since 2000. */
  stamp: number;
  /** When it happened, in milliseconds. */
  at: number;
  /** JSON. */
  properties: string;
}

/** Longer properties are read only as far as they are needed. */
const WHOLE_UP_TO = 16_384;
const AT_ONCE = 1_000;

/** Reads the events of a range that have a person, some at a time, in the order in which they were stored. */
export async function readCopyingEvents(
  pool: Pool,
  { from, to }: Range,
  { names, silent }: { names: readonly string[]; silent: readonly string[] },
  take: (events: readonly CopyingEvent[]) => void,
): Promise<void> {
  await transaction(pool, async (client) => {
    await client.query(
      `declare copying cursor for
       select project_id, distinct_id,
         ${microsecondsOf('inserted_at')}::float8 as stamp,
         (extract(epoch from timestamp) * 1000)::float8 as at,
         case when octet_length(properties::text) <= ${WHOLE_UP_TO} then properties::text
           else (select coalesce(json_object_agg(key, value), '{}')::text from json_each(properties)
             where key = any($3::text[])) end as properties
       from events
       where ${INSIDE} and person_mode = 'full' and event <> all($4::text[])`,
      [from, to, names, silent],
    );
    for (;;) {
      const { rows } = await client.query(`fetch ${AT_ONCE} from copying`);
      if (rows.length === 0) return;
      take(rows);
    }
  });
}

/** A distinct id whose events brought something. */
export interface Carrier {
  projectId: number;
  distinctId: string;
}

/** The person of a distinct id, locked. */
export interface LockedPerson {
  id: string;
  /** Since when the distinct id belongs to this person: microseconds since 2000. */
  since: number;
  /** Copied properties that were set by name, and when: microseconds since 2000. */
  namedAt: Record<string, number> | null;
}

/** What is carried into a person. */
export interface Carried {
  projectId: number;
  id: string;
  /** JSON. */
  values: string;
}

/**
 * Carries values into persons, in one transaction. Returns how many persons changed, or undefined if another process has gone on
 * from this point meanwhile: what was read is old then, and nothing is written.
 */
export function carryInto(
  pool: Pool,
  through: number,
  carriers: readonly Carrier[],
  decide: (persons: readonly (LockedPerson | undefined)[]) => readonly Carried[],
  mostBytes: number,
): Promise<number | undefined> {
  return transaction(pool, async (client) => {
    if (!(await isTurn(client, through))) return undefined;
    const stamp = await takeStamp(client);
    const carried = decide(await lockPersonsOf(client, carriers));
    if (carried.length === 0) return 0;
    const { rowCount } = await client.query({
      name: 'carry-into-persons',
      text: `update persons p set properties = p.properties || new.values, version = p.version + 1,
               changed_at = ${instantOf('$4::bigint')}
             from unnest($1::int[], $2::uuid[], $3::jsonb[]) as new (project_id, id, values)
             where p.project_id = new.project_id and p.id = new.id and p.properties || new.values <> p.properties
               and (pg_column_size(p.properties) <= 8192 or octet_length((p.properties || new.values)::text) <= $5)`,
      values: [
        int4Array(carried.map((one) => one.projectId)),
        uuidArray(carried.map((one) => one.id)),
        jsonbArray(carried.map((one) => one.values)),
        stamp,
        mostBytes,
      ],
    });
    return rowCount ?? 0;
  });
}

/** Ends a part: what comes before `to` is carried. Returns whether nobody else was faster. */
export async function keepCarried(pool: Pool, { from, to }: Range): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update person_carrying set through = ${instantOf('$2::bigint')} where through = ${instantOf('$1::bigint')}`,
    [from, to],
  );
  return rowCount === 1;
}

/** Takes the lock of those who carry, and returns whether the events before `through`, and no more, are carried. */
async function isTurn(client: Transaction, through: number): Promise<boolean> {
  const { rowCount } = await client.query(
    `select from person_carrying where through = ${instantOf('$1::bigint')} for update`,
    [through],
  );
  return rowCount === 1;
}

/**
 * Locks the persons of distinct ids. Distinct ids move between persons only under the lock of the person, so they are looked up
 * again after each lock, until all persons that they lead to are locked.
 */
async function lockPersonsOf(
  client: Transaction,
  carriers: readonly Carrier[],
): Promise<(LockedPerson | undefined)[]> {
  const locked = new Map<string, LockedPerson['namedAt']>();
  for (;;) {
    const { rows: found } = await client.query({
      name: 'persons-of-carriers',
      text: `select w.at::int - 1 as at, d.project_id, d.person_id as id,
               ${microsecondsOf('d.changed_at')}::float8 as since
             from unnest($1::int[], $2::text[]) with ordinality as w (project_id, distinct_id, at)
             join person_distinct_ids d on d.project_id = w.project_id and d.distinct_id = w.distinct_id`,
      values: [
        int4Array(carriers.map((one) => one.projectId)),
        textArray(carriers.map((one) => one.distinctId)),
      ],
    });
    const open = found.filter((one) => !locked.has(`${one.project_id}:${one.id}`));
    if (open.length === 0) {
      const persons: (LockedPerson | undefined)[] = carriers.map(() => undefined);
      for (const { at, project_id: projectId, id, since } of found) {
        persons[at] = { id, since, namedAt: locked.get(`${projectId}:${id}`) ?? null };
      }
      return persons;
    }
    for (const one of open) locked.set(`${one.project_id}:${one.id}`, null);
    const { rows } = await client.query({
      name: 'lock-carried-persons',
      text: `select p.project_id, p.id, p.named_at
             from (select distinct * from unnest($1::int[], $2::uuid[]) as w (project_id, id)) w
             join persons p on p.project_id = w.project_id and p.id = w.id
             order by p.project_id, p.id for no key update of p`,
      values: [int4Array(open.map((one) => one.project_id)), uuidArray(open.map((one) => one.id))],
    });
    for (const row of rows) locked.set(`${row.project_id}:${row.id}`, row.named_at);
  }
}
