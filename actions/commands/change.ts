import { isDeepStrictEqual } from 'node:util';
import { transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { changes } from '../../tenancy/audit.ts';
import { type ActionRow, lockAction, updateAction } from '../rows/actions.ts';
import { auditAction, loggedAction } from './audit.ts';
import type { ActionCommandDependencies } from './dependencies.ts';
import { requireFreeName, requireRoom } from './names.ts';
import { type ActionInput, type ActionProject, prepareAction } from './prepare.ts';

/**
 * Changes an action. `deleted` deletes it, and brings it back: a deleted action can be changed in no other way. Steps are
 * replaced as a whole.
 */
export async function changeAction(
  deps: ActionCommandDependencies,
  actor: Actor,
  project: ActionProject,
  actionId: number,
  input: ActionInput,
  signal?: AbortSignal,
): Promise<ActionRow> {
  const key = { projectId: project.id, actionId };
  const fields = await prepareAction(deps, project, input, signal);
  signal?.throwIfAborted();
  return transaction(deps.pool, async (client) => {
    const before = await lockAction(client, key);
    const returns = before?.deleted === true && fields.deleted === false;
    if (!before || (before.deleted && !returns)) throw refuse.absent();
    // A field with the value that it has changes nothing, so nobody compiles anything anew.
    if (fields.deleted === before.deleted) delete fields.deleted;
    if (isDeepStrictEqual(fields.steps, before.steps)) delete fields.steps;
    if (returns) await requireRoom(client, project.id);
    const name = fields.name === undefined ? before.name : fields.name;
    if (fields.deleted !== true && (returns || name !== before.name)) {
      await requireFreeName(client, project.id, name, actionId);
    }
    const after = await updateAction(client, key, fields);
    if (!after) throw refuse.absent();
    const what = after.deleted ? 'deleted' : 'updated';
    const detail = { name: after.name, ...changes(loggedAction(before), loggedAction(after)) };
    await auditAction(client, actor, key, what, detail);
    return after;
  });
}
