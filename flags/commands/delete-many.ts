import { changeTransaction } from '../../db/change-turns.ts';
import { Refusal } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { featuresOfFlags } from '../rows/early-access.ts';
import { type FlagLink, type FlagRow, listLinks, lockFlags } from '../rows/flags.ts';
import { markDeleted } from '../rows/many-flags.ts';
import { cancelRolloutsOf } from '../rows/rollouts.ts';
import { askersFirst, askersOf } from '../rules/links.ts';
import { ENDINGS } from '../rules/rollouts.ts';
import { auditFlags } from './audit.ts';
import { checkDeletion } from './check.ts';
import type { FlagCommandDependencies } from './dependencies.ts';

export interface ManyDeleted {
  deleted: FlagRow[];
  refused: { id: number; key?: string; reason: string }[];
}

/**
 * Deletes flags of a project, each by itself: what cannot be deleted stays, and the answer says why. Flags that ask about
 * each other go together. However many they are, the lock is held for a few statements.
 */
export function deleteFlags(
  { pool }: Pick<FlagCommandDependencies, 'pool'>,
  actor: Actor,
  projectId: number,
  ids: readonly number[],
): Promise<ManyDeleted> {
  return changeTransaction(pool, projectId, async (client) => {
    await lockFlags(client, projectId);
    const links = new Map((await listLinks(client, projectId)).map((one) => [one.id, one]));
    const features = await featuresOfFlags(client, projectId, ids);
    const { going, refused } = chosen(ids, links, features);
    const rows = await markDeleted(client, projectId, going, actor.kind === 'user' ? actor.userId : null);
    await cancelRolloutsOf(client, projectId, going, ENDINGS.deleted);
    const byId = new Map(rows.map((row) => [row.id, row]));
    const deleted = going.flatMap((id) => byId.get(id) ?? []);
    const detail = { changes: [{ field: 'deleted', before: false, after: true }] };
    await auditFlags(
      client,
      actor,
      deleted.map((row) => ({ row, activity: 'deleted', detail: { name: row.key, ...detail } })),
    );
    return { deleted, refused };
  });
}

/** Says which flags can go, askers first, and why others cannot. */
function chosen(
  ids: readonly number[],
  links: ReadonlyMap<number, FlagLink>,
  features: ReadonlyMap<number, string>,
): { going: number[]; refused: ManyDeleted['refused'] } {
  const going = new Set<number>();
  const refused: ManyDeleted['refused'] = [];
  const askers = askersOf(links.values());
  // A flag can go when those that ask about it are gone. So each is looked at once, however long their chains are.
  for (const id of askersFirst(new Set(ids), links)) {
    const link = links.get(id);
    if (!link) {
      refused.push({ id, reason: 'Flag not found' });
      continue;
    }
    try {
      const left = (askers.get(id) ?? []).filter((one) => !going.has(one.id));
      checkDeletion(id, left, features.get(id));
      going.add(id);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const reason = error.reason === null ? error.message : `${error.message} ${error.reason}`;
      refused.push({ id, key: link.key, reason });
    }
  }
  return { going: [...going], refused };
}
