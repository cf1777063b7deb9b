import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type Pool, transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { BackgroundQueries } from '../background/runner.ts';
import {
  type BackgroundRequest,
  type BackgroundRow,
  countOpen,
  deleteBackground,
  findBackground,
  insertBackground,
  lockBackground,
} from '../rows/background.ts';

/** So many queries of a project wait or run. */
const MOST_OPEN = 20;
const RETRY_SECONDS = 10;
/** An id is a part of a path. */
const ID = /^[\w.:@-]{1,200}$/;

export interface BackgroundDependencies {
  pool: Pool;
  background: Pick<BackgroundQueries, 'wake' | 'cancel'>;
}

const isOpen = ({ state }: BackgroundRow) => state === 'waiting' || state === 'running';

/** Begins a query in the background, or joins the same one with this id that has not ended. */
export async function beginBackground(
  { pool, background }: BackgroundDependencies,
  projectId: number,
  request: BackgroundRequest,
  id: string = randomUUID(),
): Promise<BackgroundRow> {
  if (!ID.test(id)) {
    throw refuse.invalid(
      'client_query_id',
      'An id has 1 to 200 letters, digits, and characters of "_.:@-", if the query is answered in the background.',
    );
  }
  const row = await transaction(pool, async (client) => {
    await lockBackground(client, projectId);
    const known = await findBackground(client, { projectId, id });
    if (known && isOpen(known)) {
      // What comes from the database has been JSON.
      if (isDeepStrictEqual(known.request, JSON.parse(JSON.stringify(request)))) return known;
      throw refuse.invalid(
        'client_query_id',
        'Another query with this id has not ended. Choose another id, or cancel that query.',
      );
    }
    const count = await countOpen(client, projectId);
    if (count >= MOST_OPEN) {
      throw refuse.crowded(
        `${count} queries of this project are waiting or running in the background. Wait for some to end, or cancel them.`,
        RETRY_SECONDS,
      );
    }
    return insertBackground(client, { projectId, id }, request);
  });
  background.wake();
  return row;
}

/** Finds a query in the background by its id. */
export async function showBackground(
  { pool }: Pick<BackgroundDependencies, 'pool'>,
  projectId: number,
  id: string,
): Promise<BackgroundRow> {
  const row = ID.test(id) ? await findBackground(pool, { projectId, id }) : undefined;
  if (!row) throw absent();
  return row;
}

/** Cancels a query in the background, or forgets it if it has ended. */
export async function cancelBackground(
  { pool, background }: BackgroundDependencies,
  projectId: number,
  id: string,
): Promise<void> {
  if (!ID.test(id) || !(await deleteBackground(pool, { projectId, id }))) throw absent();
  background.cancel(projectId, id);
}

const absent = () => refuse.absent('There is no query with this id, or its result has expired.');
