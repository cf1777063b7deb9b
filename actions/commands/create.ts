import { transaction } from '../../db/pool.ts';
import { lockProject } from '../../db/projects.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type ActionRow, insertAction, keyOf } from '../rows/actions.ts';
import { auditAction } from './audit.ts';
import type { ActionCommandDependencies } from './dependencies.ts';
import { requireFreeName, requireRoom } from './names.ts';
import { type ActionInput, type ActionProject, prepareAction } from './prepare.ts';

/** Creates an action. */
export async function createAction(
  deps: ActionCommandDependencies,
  actor: Actor,
  project: ActionProject,
  input: ActionInput,
  signal?: AbortSignal,
): Promise<ActionRow> {
  const fields = await prepareAction(deps, project, { steps: [], ...input }, signal);
  signal?.throwIfAborted();
  return transaction(deps.pool, async (client) => {
    if (!(await lockProject(client, project.id))) throw refuse.absent('Project not found.');
    const deleted = fields.deleted ?? false;
    if (!deleted) {
      await requireRoom(client, project.id);
      await requireFreeName(client, project.id, fields.name ?? null, null);
    }
    const row = await insertAction(client, {
      name: null,
      description: '',
      tags: [],
      post_to_slack: false,
      slack_message_format: '',
      steps: [],
      bytecode: [],
      pinned_at: null,
      ...fields,
      deleted,
      project_id: project.id,
      created_by: actor.kind === 'user' ? actor.userId : null,
    });
    await auditAction(client, actor, keyOf(row), 'created', { name: row.name });
    return row;
  });
}
