import { setTimeout as pause } from 'node:timers/promises';
import { lowerPriority } from './backend-priority.ts';
import type { Pool, Transaction } from './pool.ts';

/** How often long work says that it goes on. */
const BEAT_MILLISECONDS = 10_000;

/** Work that takes long. */
export interface LongWork {
  signal: AbortSignal;
  beat(): void;
}

/**
 * Runs long statements on a connection of their own. When `signal` is aborted, Postgres ends the statement. The connection is
 * closed afterwards, and with it its settings and locks.
 */
export async function onConnection<T>(
  pool: Pool,
  { signal, beat }: LongWork,
  run: (client: Transaction) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  const over = new AbortController();
  // Without a listener, a connection lost between two queries would end the process.
  client.on('error', () => undefined);
  let pid: number | undefined;
  const cancel = () => {
    if (pid !== undefined) void pool.query('select pg_cancel_backend($1)', [pid]).catch(() => undefined);
  };
  signal.addEventListener('abort', cancel);
  const beats = (async () => {
    while (!over.signal.aborted) {
      beat();
      await pause(BEAT_MILLISECONDS, undefined, { signal: over.signal }).catch(() => undefined);
    }
  })();
  try {
    const { rows } = await client.query('select pg_backend_pid() as pid');
    pid = rows[0].pid;
    await lowerPriority(client);
    // One process of Postgres, and little memory: what is done here is not urgent.
    await client.query(
      `set max_parallel_maintenance_workers = 0; set maintenance_work_mem = '64MB'; set statement_timeout = 0;
       set lock_timeout = 0`,
    );
    signal.throwIfAborted();
    return await run(client);
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    over.abort();
    signal.removeEventListener('abort', cancel);
    client.release(true);
    await beats;
  }
}

/** Does a piece of long work. After it, others have `rest` times its duration for themselves. */
export async function paced<T>(
  { signal, beat }: LongWork,
  piece: () => Promise<T>,
  rest: number,
): Promise<T> {
  signal.throwIfAborted();
  beat();
  const began = performance.now();
  const result = await piece();
  await pause((performance.now() - began) * rest, undefined, { signal }).catch(() => signal.throwIfAborted());
  return result;
}
