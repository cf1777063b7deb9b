import { transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { listOrdered, lockOrdered, type ShownFunctionRow, updateFunction } from '../rows/functions.ts';
import { lockOrders } from '../rows/locks.ts';
import { auditFunction } from './audit.ts';
import type { FunctionCommandDependencies } from './dependencies.ts';

const TYPE = 'transformation';

/** Gives transformations of a project other places. Returns all of them in their new order. */
export async function rearrangeFunctions(
  { pool }: Pick<FunctionCommandDependencies, 'pool'>,
  actor: Actor,
  projectId: number,
  orders: ReadonlyMap<string, number>,
): Promise<ShownFunctionRow[]> {
  if (orders.size === 0) throw refuse.invalid(null, 'No orders provided');
  return transaction(pool, async (client) => {
    await lockOrders(client, projectId);
    const found = new Map((await lockOrdered(client, projectId, TYPE)).map((row) => [row.id, row]));
    for (const id of orders.keys()) {
      if (!found.has(id)) throw refuse.invalid(null, `HogFunction with id ${id} does not exist`);
    }
    for (const [id, order] of orders) {
      const { name, execution_order: before } = found.get(id) as {
        name: string | null;
        execution_order: number | null;
      };
      if (before === order) continue;
      const key = { projectId, functionId: id };
      await updateFunction(client, key, { execution_order: order });
      const changes = [{ field: 'priority', before, after: order }];
      await auditFunction(client, actor, key, 'updated', { name, changes });
    }
    return listOrdered(client, projectId, TYPE);
  });
}
