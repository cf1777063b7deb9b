import { type Transaction, transaction } from '../../db/pool.ts';
import { lockProject } from '../../db/projects.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type FlagRow, hasFlags, insertFlag, isKeyTaken, listLinks, lockFlags } from '../rows/flags.ts';
import { FLAG_LIMITS } from '../rules/limits.ts';
import { checkFilters } from '../validation/filters.ts';
import { auditFlag } from './audit.ts';
import { checkAsks, checkCohorts, checkKey, checkSettings } from './check.ts';
import type { FlagCommandDependencies, FlagInput } from './dependencies.ts';

export const taken = () =>
  refuse.invalid('key', 'There is already a feature flag with this key.', { code: 'unique' });

/** Creates a flag. */
export const createFlag = (
  deps: FlagCommandDependencies,
  actor: Actor,
  projectId: number,
  input: FlagInput,
): Promise<FlagRow> =>
  transaction(deps.pool, (client) => createFlagIn(client, deps, actor, projectId, input));

/** Creates a flag as a part of a transaction. */
export async function createFlagIn(
  client: Transaction,
  deps: Pick<FlagCommandDependencies, 'knownCohorts'>,
  actor: Actor,
  projectId: number,
  input: FlagInput,
): Promise<FlagRow> {
  const key = input.key ?? '';
  checkKey(key);
  const { is_remote_configuration: isRemoteConfiguration = false } = input;
  // A flag without filters is one for nobody yet.
  const checked = checkFilters(input.filters ?? { groups: [] }, {
    isNew: input.filters !== undefined,
    isRemoteConfiguration,
  });
  const fields = {
    key,
    name: input.name ?? '',
    filters: JSON.stringify(
      input.filters === undefined && !isRemoteConfiguration ? { groups: [] } : checked.filters,
    ),
    active: input.active ?? true,
    archived: input.archived ?? false,
    deleted: input.deleted ?? false,
    ensure_experience_continuity: input.ensure_experience_continuity ?? false,
    is_remote_configuration: isRemoteConfiguration,
    evaluation_runtime: input.evaluation_runtime ?? 'all',
    bucketing_identifier: input.bucketing_identifier ?? 'distinct_id',
    evaluation_contexts: input.evaluation_contexts ?? [],
    tags: input.tags ?? [],
  } as const;
  checkSettings(fields);
  if (fields.archived && fields.active) throw archivedIsActive();
  if (!(await lockProject(client, projectId))) throw refuse.absent('Project not found.');
  await lockFlags(client, projectId);
  if (!fields.deleted && (await isKeyTaken(client, projectId, key, null))) throw taken();
  if (!fields.deleted && (await hasFlags(client, projectId, FLAG_LIMITS.flags))) {
    throw refuse.invalid(null, `A project may have ${FLAG_LIMITS.flags} feature flags.`, { code: 'limit' });
  }
  await checkCohorts(deps, client, projectId, checked.cohorts);
  if (checked.asks.length > 0) {
    const own = { id: 0, key, active: fields.active, asks: checked.asks };
    checkAsks(own, await listLinks(client, projectId));
  }
  const row = await insertFlag(client, {
    ...fields,
    project_id: projectId,
    created_by: actor.kind === 'user' ? actor.userId : null,
  });
  await auditFlag(client, actor, row, 'created', { name: row.key });
  return row;
}

export const archivedIsActive = () =>
  refuse.invalid('archived', 'Cannot archive an enabled feature flag. Disable it first.');
