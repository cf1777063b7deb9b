import { type Pool, transaction } from '../../db/pool.ts';
import {
  deliveryBacklog as countDeliveries,
  dispatchBacklog as countDispatch,
  type DispatchBacklog,
} from '../rows/backlog.ts';

const LONGEST = 20_000;
/** How many projects are told by name. */
const MOST_PROJECTS = 10;

const counting = <T>(pool: Pool, count: (client: Parameters<typeof countDispatch>[0]) => Promise<T>) =>
  transaction(pool, async (client) => {
    await client.query(`set transaction read only; set local statement_timeout = ${LONGEST}`);
    return count(client);
  });

/** Counts the events that functions have not seen yet. */
export const dispatchBacklog = ({ pool }: { pool: Pool }): Promise<DispatchBacklog> =>
  counting(pool, countDispatch);

/** Counts the invocations that wait. */
export const deliveryBacklog = ({ pool }: { pool: Pool }) =>
  counting(pool, (client) => countDeliveries(client, MOST_PROJECTS));
