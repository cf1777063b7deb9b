import { setTimeout as pause } from 'node:timers/promises';
import { LOCKS } from './locks.ts';
import type { Pool, Queryable } from './pool.ts';
import { transaction } from './pool.ts';

const LOCK_NOT_AVAILABLE = '55P03';

/**
 * What a transaction that stores events says first. It answers one row, `stamp`: the inserted_at of its rows, in
 * microseconds since 2000-01-01 (Postgres's own count). Until it ends, nobody can close the horizon over it.
 *
 * Two statements, because `closed` must be read by a snapshot that is taken after the lock was granted.
 */
export const STAMP_SQL = `select pg_advisory_xact_lock_shared(${LOCKS.horizon});
select (extract(epoch from
  greatest(clock_timestamp(), (select closed from event_horizon) + interval '1 microsecond')
  - timestamptz '2000-01-01 00:00:00+00') * 1000000)::bigint::text as stamp`;

/**
 * Moves the horizon to now: whatever has inserted_at at or before the answer is final, for ever. Answers undefined
 * when writers did not let go of it within `lockTimeout` milliseconds, or when somebody else is at it: the caller reads
 * the horizon and tries again. While one waits for writers, new writers wait, too; then they have as long for
 * themselves, however many want to close.
 */
export async function closeHorizon(pool: Pool, lockTimeout: number): Promise<string | undefined> {
  return transaction(pool, async (client) => {
    const { rows: turns } = await client.query(
      `select set_config('lock_timeout', $1, true), pg_try_advisory_xact_lock($2) as mine`,
      [`${lockTimeout}ms`, LOCKS.closing],
    );
    if (!turns[0].mine) return undefined;
    try {
      await client.query(`savepoint waiting; select pg_advisory_xact_lock(${LOCKS.horizon})`);
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
      await client.query('rollback to savepoint waiting');
      await pause(lockTimeout);
      return undefined;
    }
    const { rows } = await client.query(
      `insert into event_horizon (closed) values (clock_timestamp())
       on conflict (only_row) do update set closed = greatest(event_horizon.closed, excluded.closed) returning closed`,
    );
    return rows[0].closed as string;
  });
}

/** Up to where events are final; `-infinity` before it was closed for the first time. */
export async function readHorizon(queryable: Queryable): Promise<string> {
  const { rows } = await queryable.query('select closed from event_horizon');
  return rows[0]?.closed ?? '-infinity';
}
