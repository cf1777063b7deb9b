import type { Pool } from '../../db/pool.ts';
import { readOnly } from '../../db/reading.ts';
import {
  deliveryBacklog as countDeliveries,
  dispatchBacklog as countDispatch,
  type DispatchBacklog,
} from '../rows/backlog.ts';

const BOUNDS = { timeoutMs: 20_000 };
/** How many projects are told by name. */
const MOST_PROJECTS = 10;

/** Counts the events that functions have not seen yet. */
export const dispatchBacklog = ({ pool }: { pool: Pool }): Promise<DispatchBacklog> =>
  readOnly(pool, BOUNDS, countDispatch);

/** Counts the invocations that wait. */
export const deliveryBacklog = ({ pool }: { pool: Pool }) =>
  readOnly(pool, BOUNDS, (client) => countDeliveries(client, MOST_PROJECTS));
