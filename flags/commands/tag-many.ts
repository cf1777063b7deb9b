import { changeTransaction } from '../../db/change-turns.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { lockFlags } from '../rows/flags.ts';
import { findTags, putTags, type TaggedFlag } from '../rows/many-flags.ts';
import { FLAG_LIMITS } from '../rules/limits.ts';
import { auditFlags } from './audit.ts';
import type { FlagCommandDependencies } from './dependencies.ts';

/** What a change makes of the tags of a flag. */
const CHANGES = {
  add: (tags: readonly string[], given: readonly string[]) => [...new Set([...tags, ...given])],
  remove: (tags: readonly string[], given: readonly string[]) => tags.filter((one) => !given.includes(one)),
  set: (_: readonly string[], given: readonly string[]) => [...given],
} as const;

export type TagChange = keyof typeof CHANGES;
export const TAG_CHANGES = Object.keys(CHANGES) as [TagChange, ...TagChange[]];

export interface ManyTagged {
  updated: Pick<TaggedFlag, 'id' | 'tags'>[];
  skipped: { id: number; reason: string }[];
}

/** Changes the tags of flags of a project, in a few statements. The tags are in small letters, each once. */
export function tagFlags(
  { pool }: Pick<FlagCommandDependencies, 'pool'>,
  actor: Actor,
  projectId: number,
  { ids, change, tags }: { ids: readonly number[]; change: TagChange; tags: readonly string[] },
): Promise<ManyTagged> {
  return changeTransaction(pool, projectId, async (client) => {
    await lockFlags(client, projectId);
    const known = await findTags(client, projectId, ids);
    const done: ManyTagged = { updated: [], skipped: [] };
    const changed: { row: TaggedFlag; tags: string[] }[] = [];
    for (const id of new Set(ids)) {
      const row = known.get(id);
      const after = row && CHANGES[change](row.tags, tags);
      if (!row || !after) {
        done.skipped.push({ id, reason: 'Flag not found' });
      } else if (after.length > FLAG_LIMITS.tags) {
        const reason = `The flag would have ${after.length} tags; at most ${FLAG_LIMITS.tags} are allowed.`;
        done.skipped.push({ id, reason });
      } else {
        done.updated.push({ id, tags: after });
        if (JSON.stringify(after) !== JSON.stringify(row.tags)) changed.push({ row, tags: after });
      }
    }
    const written = changed.map(({ row, tags: after }) => ({ id: row.id, tags: after }));
    await putTags(client, projectId, written, actor.kind === 'user' ? actor.userId : null);
    await auditFlags(
      client,
      actor,
      changed.map(({ row, tags: after }) => ({
        row: { id: row.id, project_id: projectId },
        activity: 'updated',
        detail: { name: row.key, changes: [{ field: 'tags', before: row.tags, after }] },
      })),
    );
    return done;
  });
}
