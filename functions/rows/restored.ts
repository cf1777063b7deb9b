import type { Queryable } from '../../db/pool.ts';

const RESTORED = 'A backup was restored while this waited. Run it again if it was not delivered.';

/**
 * Takes what a restored backup had still to be sent out of the queue: most of it was sent after the backup was made. It is
 * listed as cancelled, so that somebody can run it again. Returns how many invocations these are.
 */
export async function cancelRestored(queryable: Queryable): Promise<number> {
  // Tables of a backup from before functions ran do not exist yet.
  const { rows: known } = await queryable.query(
    `select to_regclass('function_queue') is not null as queue, to_regclass('function_internal_events') is not null as internal,
       to_regclass('function_replays') is not null as replays, to_regclass('function_positions') is not null as positions`,
  );
  const { queue, internal, replays, positions } = known[0];
  if (!queue) return 0;
  await queryable.query('delete from function_batches');
  await queryable.query('delete from function_late_batches');
  if (internal) await queryable.query('delete from function_internal_events');
  if (replays) {
    await queryable.query(
      `update function_replays set status = 'cancelled', reason = $1, finished_at = clock_timestamp(), updated_at = clock_timestamp()
       where status in ('running', 'paused')`,
      ['A backup was restored while this ran.'],
    );
  }
  const cancelled = positions ? await cancelPositions(queryable) : 0;
  const { rowCount } = await queryable.query(
    `with waiting as (delete from function_queue returning *)
     insert into function_invocations (project_id, id, function_id, version, mapping, event_uuid, event_timestamp, distinct_id,
       person_id, groups, globals, status, error, attempts, rerun_of, created_at, finished_at)
     select project_id, id, function_id, version, mapping, event_uuid, event_timestamp, distinct_id, person_id, groups, globals,
       'cancelled', $1, coalesce(progress->'attempts', '[]'), rerun_of, created_at, clock_timestamp()
     from waiting`,
    [RESTORED],
  );
  return cancelled + (rowCount ?? 0);
}

async function cancelPositions(queryable: Queryable): Promise<number> {
  await queryable.query('delete from function_floods');
  const { rowCount } = await queryable.query(
    `with waiting as (delete from function_positions returning *)
     insert into function_invocations (project_id, id, function_id, version, mapping, event_uuid, event_timestamp, distinct_id,
       person_id, status, error, attempts, created_at, finished_at)
     select w.project_id, gen_random_uuid(), w.function_id, w.version, nullif(p.mapping, -1), e.uuid, e.timestamp, e.distinct_id,
       e.person_id, 'cancelled', $1, '[]', w.created_at, clock_timestamp()
     from waiting w cross join lateral unnest(w.uuids, w.timestamps, w.mappings) as p (uuid, timestamp, mapping)
     join lateral (select * from events i where i.project_id = w.project_id and i.timestamp = p.timestamp and i.uuid = p.uuid
       limit 1) e on true`,
    [RESTORED],
  );
  return rowCount ?? 0;
}
