import type { Queryable } from '../../db/pool.ts';

/** How many invocations of a key want to go through. */
export interface MaskRequest {
  project_id: number;
  function_id: string;
  /** Hexadecimal digits. */
  key: string;
  /** Seconds that a window lasts. */
  ttl: number;
  invocations: number;
}

/**
 * Counts invocations in the windows of their keys. Returns how many each window had before, in the order of the requests.
 * Each key is named once. The keys are locked in their order, so that two transactions never wait for each other in a
 * circle.
 */
export async function countMasked(queryable: Queryable, requests: readonly MaskRequest[]): Promise<number[]> {
  if (requests.length === 0) return [];
  const { rows } = await queryable.query({
    name: 'count-masked-invocations',
    text: `insert into function_masks as m (project_id, function_id, key, ends_at, count)
     select project_id, function_id, decode(key, 'hex'), clock_timestamp() + ttl * interval '1 second', invocations
     from unnest($1::int[], $2::uuid[], $3::text[], $4::int[], $5::int[])
       as r (project_id, function_id, key, ttl, invocations)
     order by project_id, function_id, key
     on conflict (project_id, function_id, key) do update set
       count = case when m.ends_at <= clock_timestamp() then excluded.count else m.count + excluded.count end,
       ends_at = case when m.ends_at <= clock_timestamp() then excluded.ends_at else m.ends_at end
     returning function_id, encode(key, 'hex') as key, count`,
    values: [
      requests.map((one) => one.project_id),
      requests.map((one) => one.function_id),
      requests.map((one) => one.key),
      requests.map((one) => one.ttl),
      requests.map((one) => one.invocations),
    ],
  });
  const counted = new Map(rows.map((row) => [`${row.function_id}:${row.key}`, row.count as number]));
  return requests.map(
    ({ function_id, key, invocations }) => (counted.get(`${function_id}:${key}`) as number) - invocations,
  );
}

/** Removes windows that have ended. */
export async function deleteEndedMasks(queryable: Queryable, limit: number): Promise<number> {
  const { rowCount } = await queryable.query(
    `delete from function_masks where (project_id, function_id, key) in (
       select project_id, function_id, key from function_masks where ends_at < clock_timestamp()
       order by ends_at limit $1 for update skip locked)`,
    [limit],
  );
  return rowCount ?? 0;
}
