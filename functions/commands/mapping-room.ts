import type { Transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import { countMappings, type FunctionKey } from '../rows/functions.ts';
import { lockOrders } from '../rows/locks.ts';
import { MOST_MAPPINGS } from '../rules/limits.ts';

/**
 * Refuses an enabled function with mappings that no longer fit beside those of the others of its project: an event can lead
 * to an invocation for each of them. Only one change at a time can look.
 */
export async function requireMappingRoom(
  client: Transaction,
  key: FunctionKey,
  mappings: readonly unknown[] | null | undefined,
): Promise<void> {
  if (!mappings || mappings.length === 0) return;
  await lockOrders(client, key.projectId);
  const count = (await countMappings(client, key)) + mappings.length;
  if (count <= MOST_MAPPINGS) return;
  throw refuse.invalid(
    'mappings',
    `The enabled functions of a project may have ${MOST_MAPPINGS} mappings together, and with this one they have ${count}. ` +
      'Leave out some mappings, or disable another function.',
  );
}
