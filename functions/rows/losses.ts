// What functions still want of stored events when retention comes.
import type { Queryable } from '../../db/pool.ts';
import { addCounts } from './counts.ts';

/** The uuid and the time in a key of 28 bytes `k`, the n-th of several. */
const PART = (from: number, bytes: number) =>
  `encode(substring(k.keys from 28 * k.n + ${from} for ${bytes}), 'hex')`;
const INSTANT = `timestamptz '2000-01-01 00:00:00+00'
   + ('x' || ${PART(21, 8)})::bit(64)::bigint * interval '1 microsecond'`;
const PROJECT = `('x' || ${PART(1, 4)})::bit(32)::int`;
const ofKeys = (table: string) => `select ${PROJECT}, null::uuid, ${PART(5, 16)}::uuid, ${INSTANT}
   from (select keys, generate_series(0, length(keys) / 28 - 1) as n from ${table}) k`;

/**
 * The events that functions have not had: those that are matched, and those that nobody has looked at. `condition` chooses
 * among positions.
 */
const wanted = (condition: string) => `(
   select project_id, function_id, event_uuid as uuid, event_timestamp as timestamp from function_queue
     where event_uuid is not null
   union all
   select p.project_id, p.function_id, u.uuid, u.timestamp
     from function_positions p cross join lateral unnest(p.uuids, p.timestamps) as u (uuid, timestamp)
     where ${condition}
   union all ${ofKeys('function_batches')}
   union all ${ofKeys('function_late_batches')}
 ) as w (project_id, function_id, uuid, timestamp)`;

const within = (partition: string, condition = 'true'): string => {
  if (!/^events_\d{8}$/.test(partition)) throw new TypeError(`${partition} is no partition of events`);
  return `from ${wanted(condition)} join ${partition} e
     on e.project_id = w.project_id and e.timestamp = w.timestamp and e.uuid = w.uuid`;
};

/** Answers whether functions have still to see events of a partition. */
export async function eventsWanted(queryable: Queryable, partition: string): Promise<boolean> {
  const { rows } = await queryable.query(`select exists (select ${within(partition)}) as some`);
  return rows[0].some;
}

/**
 * Writes down how many events of a partition functions will not see, because it is dropped. What was cancelled is not lost.
 * Returns how many.
 */
export async function noteLosses(queryable: Queryable, partition: string): Promise<number> {
  const { rows } = await queryable.query(
    `insert into function_losses (project_id, function_id, partition, events)
     select w.project_id, w.function_id, $1, count(*) ${within(partition, 'p.cancelled is null')}
     join projects p on p.id = w.project_id group by 1, 2
     returning project_id as "projectId", function_id as "functionId", events as count`,
    [partition],
  );
  const known = rows.filter(({ functionId }) => functionId !== null);
  await addCounts(
    queryable,
    known.map((one) => ({ ...one, kind: 'failure' as const, name: 'lost' })),
  );
  return rows.reduce((sum, { count }) => sum + count, 0);
}

/** Events that functions did not have since an instant, because retention deleted them. */
export async function lossesSince(queryable: Queryable, since: Date): Promise<number> {
  const { rows } = await queryable.query(
    'select coalesce(sum(events), 0)::bigint as lost from function_losses where lost_at >= $1',
    [since],
  );
  return rows[0].lost;
}

/** Deletes what was noted before an instant. Returns how many. */
export async function deleteLosses(queryable: Queryable, before: Date): Promise<number> {
  const { rowCount } = await queryable.query('delete from function_losses where lost_at < $1', [before]);
  return rowCount ?? 0;
}
