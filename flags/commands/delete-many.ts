import { transaction } from '../../db/pool.ts';
import { Refusal } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { changes } from '../../tenancy/audit.ts';
import { type FlagRow, findFlag, listLinks, lockFlags, updateFlag } from '../rows/flags.ts';
import { cancelRolloutOf } from '../rows/rollouts.ts';
import { askersFirst } from '../rules/links.ts';
import { ENDINGS } from '../rules/rollouts.ts';
import { auditFlag, loggedFlag } from './audit.ts';
import { checkDeletion } from './change.ts';
import type { FlagCommandDependencies } from './dependencies.ts';

export interface ManyDeleted {
  deleted: FlagRow[];
  refused: { id: number; key: string | null; reason: string }[];
}

/**
 * Deletes flags of a project, each by itself: what cannot be deleted stays, and the answer says why. Flags that ask about
 * each other go together.
 */
export function deleteFlags(
  { pool }: Pick<FlagCommandDependencies, 'pool'>,
  actor: Actor,
  projectId: number,
  ids: readonly number[],
): Promise<ManyDeleted> {
  return transaction(pool, async (client) => {
    await lockFlags(client, projectId);
    let links = await listLinks(client, projectId);
    const deleted: FlagRow[] = [];
    const refused: ManyDeleted['refused'] = [];
    // A flag can go when those that ask about it are gone. So each is looked at once, however long their chains are.
    for (const id of askersFirst(new Set(ids), new Map(links.map((one) => [one.id, one])))) {
      const key = { projectId, flagId: id };
      const before = await findFlag(client, key);
      if (!before || before.deleted) {
        refused.push({ id, key: null, reason: 'Flag not found' });
        continue;
      }
      try {
        await checkDeletion(client, before, links);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        refused.push({ id, key: before.key, reason: error.message });
        continue;
      }
      const userId = actor.kind === 'user' ? actor.userId : null;
      const after = (await updateFlag(client, key, { deleted: true }, userId)) as FlagRow;
      await cancelRolloutOf(client, key, ENDINGS.deleted);
      await auditFlag(client, actor, after, 'deleted', {
        name: after.key,
        ...changes(loggedFlag(before), loggedFlag(after)),
      });
      links = links.filter((one) => one.id !== id);
      deleted.push(after);
    }
    return { deleted, refused };
  });
}
