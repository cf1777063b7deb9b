import type { Queryable } from '../../db/pool.ts';

/** Somebody asked for a flag by its key. */
export interface FlagCall {
  projectId: number;
  key: string;
  /** Milliseconds since 1970. */
  at: number;
}

/** The last call is exact to so many minutes. A flag that is called all the time is written as seldom. */
const MINUTES = 10;

/** Writes down when flags were called. Keys that no flag has are left out. */
export async function noteCalls(queryable: Queryable, calls: readonly FlagCall[]): Promise<void> {
  await queryable.query(
    `with called as (
       select f.project_id, f.id, to_timestamp(c.at / 1000) as at
       from unnest($1::int[], $2::text[], $3::float8[]) as c (project_id, key, at)
       join feature_flags f on f.project_id = c.project_id and f.key = c.key and not f.deleted
       where f.last_called_at is null or f.last_called_at < to_timestamp(c.at / 1000) - interval '${MINUTES} minutes'
       order by f.project_id, f.id for update of f)
     update feature_flags f set last_called_at = c.at from called c
     where f.project_id = c.project_id and f.id = c.id`,
    [calls.map((one) => one.projectId), calls.map((one) => one.key), calls.map((one) => one.at)],
  );
}
