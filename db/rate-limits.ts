import type { Queryable } from './pool.ts';

/** Deletes counters whose window is over. `expire` is in milliseconds. */
export async function deleteExpiredRateLimits(queryable: Queryable): Promise<number> {
  const { rowCount } = await queryable.query(
    'delete from rate_limits where expire < extract(epoch from clock_timestamp()) * 1000',
  );
  return rowCount ?? 0;
}
