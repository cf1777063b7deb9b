import { type Pool, transaction } from '../../db/pool.ts';
import { eventually } from './eventually.ts';

export interface LockedOut<T> {
  /** What somebody else has done and not committed yet. */
  sql: string;
  values?: unknown[];
  meanwhile: () => Promise<T>;
  /** Answers whether it waits. By default: somebody waits for a lock. */
  isWaiting?: () => Promise<boolean>;
}

/** Does something while another transaction is open. It is committed when the other one waits. */
export async function lockedOut<T>(
  pool: Pool,
  { sql, values, meanwhile, isWaiting = () => waitsForLock(pool) }: LockedOut<T>,
): Promise<T> {
  const { result } = await transaction(pool, async (client) => {
    await client.query(sql, values);
    const running = meanwhile();
    running.catch(() => undefined);
    await eventually(isWaiting);
    return { result: running };
  });
  return result;
}

async function waitsForLock(pool: Pool): Promise<boolean> {
  const { rowCount } = await pool.query(
    "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  return rowCount !== 0;
}
