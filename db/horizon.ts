import { setTimeout as pause } from 'node:timers/promises';
import type { QueryResult } from 'pg';
import { LOCKS } from './locks.ts';
import type { Pool, Queryable, Transaction } from './pool.ts';
import { transaction } from './pool.ts';

const LOCK_NOT_AVAILABLE = '55P03';

/** Returns the SQL that converts an instant to microseconds since 2000-01-01, Postgres's own count. */
export const microsecondsOf = (instant: string): string =>
  `(extract(epoch from ${instant} - timestamptz '2000-01-01 00:00:00+00') * 1000000)`;

/**
 * The first statements of a transaction that stores events. They return one row, `stamp`: the inserted_at of the new
 * rows, in microseconds since 2000-01-01 (Postgres's own count). Until the transaction ends, the horizon cannot be
 * moved past it.
 *
 * These are two statements, because `closed` must be read by a snapshot that is taken after the lock was granted.
 */
export const STAMP_SQL = `select pg_advisory_xact_lock_shared(${LOCKS.horizon});
select ${microsecondsOf(
  `greatest(clock_timestamp(), (select closed from event_horizon) + interval '1 microsecond')`,
)}::bigint::text as stamp`;

/** Returns the SQL that converts a stamp, or another number of microseconds since 2000, to an instant. */
export const instantOf = (stamp: string): string =>
  `(timestamptz '2000-01-01 00:00:00+00' + ${stamp} * interval '1 microsecond')`;

/** Lets a transaction change what the horizon is about, and returns its stamp. */
export async function takeStamp(client: Transaction): Promise<string> {
  const [, stamped] = (await client.query(STAMP_SQL)) as unknown as QueryResult[];
  return stamped?.rows[0].stamp;
}

/**
 * Moves the horizon to now and returns it: rows with an inserted_at up to then are final for ever. Returns undefined if
 * writers keep their lock for more than `lockTimeout` milliseconds, or if another process is moving the horizon. The
 * caller then reads the horizon and tries again. While this waits for writers, new writers wait as well. If it gives
 * up, it pauses for the same time with its turn still taken, so that writers can work however many processes want to
 * move the horizon.
 */
export function closeHorizon(pool: Pool, lockTimeout: number): Promise<string | undefined> {
  return inTurn(pool, lockTimeout, (client) => close(client, lockTimeout));
}

/** Does work when no other process moves the horizon. Returns undefined if one does. */
function inTurn(
  pool: Pool,
  lockTimeout: number,
  work: (client: Transaction) => Promise<string | undefined>,
): Promise<string | undefined> {
  return transaction(pool, async (client) => {
    const { rows } = await client.query(
      `select set_config('lock_timeout', $1, true), pg_try_advisory_xact_lock($2) as mine`,
      [`${lockTimeout}ms`, LOCKS.closing],
    );
    return rows[0].mine ? work(client) : undefined;
  });
}

async function close(client: Transaction, lockTimeout: number): Promise<string | undefined> {
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
}

/**
 * Returns the horizon if it was moved in the last `every` milliseconds, and otherwise moves it as `closeHorizon` does. However
 * many processes call this, and however often, writers wait once in that time at most.
 */
export async function followHorizon(
  pool: Pool,
  { every, lockTimeout }: { every: number; lockTimeout: number },
): Promise<string | undefined> {
  const recent = async (queryable: Queryable): Promise<string | undefined> => {
    const { rows } = await queryable.query(
      `select closed from event_horizon where closed > clock_timestamp() - $1 * interval '1 millisecond'`,
      [every],
    );
    return rows[0]?.closed;
  };
  // Another process may move it before this one has its turn.
  const known = await recent(pool);
  return (
    known ??
    inTurn(pool, lockTimeout, async (client) => (await recent(client)) ?? (await close(client, lockTimeout)))
  );
}

/** Returns the time up to which events are final, or `-infinity` if the horizon was never moved. */
export async function readHorizon(queryable: Queryable): Promise<string> {
  const { rows } = await queryable.query('select closed from event_horizon');
  return rows[0]?.closed ?? '-infinity';
}

/**
 * Returns an instant before which all events are stored: one that is as late as the open transactions of writers allow. Unlike
 * `closeHorizon` it makes nobody wait, so pages can be read up to it.
 *
 * The clock is read first: whoever takes the lock after that gets a later stamp. Those who hold it got theirs after they had begun.
 * If the clock went back, the horizon is later.
 */
export async function storedBefore(pool: Pool): Promise<string> {
  const { rows } = await pool.query('select clock_timestamp() as now');
  const { rows: found } = await pool.query(
    `select greatest((select closed from event_horizon),
       least($1::timestamptz, min(coalesce(a.xact_start, timestamptz '2000-01-01 00:00:00+00')))) as instant
     from pg_locks l left join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.granted and l.objsubid = 1
       and l.database = (select oid from pg_database where datname = current_database())
       and (l.classid::bigint << 32) | l.objid::bigint = $2`,
    [rows[0].now, LOCKS.horizon],
  );
  return found[0].instant;
}
