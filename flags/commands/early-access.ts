import { changeTransaction } from '../../db/change-turns.ts';
import type { Transaction } from '../../db/pool.ts';
import { lockProject } from '../../db/projects.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type Activity, audit, changes } from '../../tenancy/audit.ts';
import {
  deleteEarlyAccess,
  type EarlyAccessFields,
  type EarlyAccessKey,
  type EarlyAccessRow,
  findEarlyAccess,
  hasEarlyAccess,
  insertEarlyAccess,
  updateEarlyAccess,
} from '../rows/early-access.ts';
import { type FlagRow, findFlag, freeFlagKey, lockFlags } from '../rows/flags.ts';
import { enrollment, filtersOfFeature, keyOfName, opensFlag, type Stage } from '../rules/early-access.ts';
import { FLAG_LIMITS } from '../rules/limits.ts';
import { changeFlagIn } from './change.ts';
import { createFlagIn } from './create.ts';
import type { FlagCommandDependencies } from './dependencies.ts';

/** The key of a flag whose feature has a name without letters and digits. */
const UNNAMED = { key: 'early-access', base: 'early-access', ownId: null };

export interface NewFeature extends EarlyAccessFields {
  /** A flag that exists. Undefined: the feature makes one. */
  flagId: number | undefined;
}

const logged = ({ name, description, stage, documentation_url, payload }: EarlyAccessRow) => ({
  ...{ name, description, stage, documentation_url, payload },
});

const auditFeature = (
  client: Transaction,
  actor: Actor,
  row: EarlyAccessRow,
  activity: Activity['activity'],
  detail: Record<string, unknown>,
) =>
  audit(client, actor, {
    ...{ scope: 'EarlyAccessFeature', itemId: row.id, projectId: row.project_id, activity },
    detail: { name: row.name, ...detail },
  });

const wrongFlag = (message: string) => refuse.invalid('feature_flag_id', message);

/** Refuses flags that cannot be chosen by a person. */
function checkFlag(flag: FlagRow | undefined): asserts flag is FlagRow {
  if (!flag || flag.deleted) throw wrongFlag('Feature Flag with this ID does not exist');
  const filters = JSON.parse(flag.filters) as {
    aggregation_group_type_index?: unknown;
    multivariate?: { variants?: unknown[] } | null;
  };
  if (typeof filters.aggregation_group_type_index === 'number') {
    throw wrongFlag('Group-based feature flags are not supported for Early Access Features.');
  }
  if ((filters.multivariate?.variants ?? []).length > 0) {
    throw wrongFlag('Multivariate feature flags are not supported for Early Access Features.');
  }
}

/** Makes a feature that persons choose themselves, and its flag if none is given. */
export function createFeature(
  deps: FlagCommandDependencies,
  actor: Actor,
  projectId: number,
  { flagId, ...fields }: NewFeature,
): Promise<EarlyAccessRow> {
  return changeTransaction(deps.pool, projectId, async (client) => {
    if (!(await lockProject(client, projectId))) throw refuse.absent('Project not found.');
    await lockFlags(client, projectId);
    if (await hasEarlyAccess(client, projectId, FLAG_LIMITS.features)) {
      const message = `A project may have ${FLAG_LIMITS.features} early access features.`;
      throw refuse.invalid(null, message, { code: 'limit' });
    }
    let id = flagId;
    if (id === undefined) {
      // A key that is taken is refused: it may well be the flag that the feature is meant to have.
      const key = keyOfName(fields.name) || (await freeFlagKey(client, projectId, UNNAMED));
      const name = `Feature Flag for Early Access Feature ${fields.name}`;
      const input = { key, name, filters: filtersOfFeature(fields.stage) };
      id = (await createFlagIn(client, deps, actor, projectId, input)).id;
    } else {
      const flag = await findFlag(client, { projectId, flagId: id });
      checkFlag(flag);
      await setEnrollment(client, deps, actor, flag, fields.stage);
    }
    const row = await insertEarlyAccess(client, {
      ...{ project_id: projectId, id: uuidv7(), flag_id: id },
      ...fields,
    });
    if (!row) {
      const linked = await findFlag(client, { projectId, flagId: id });
      throw wrongFlag(`Linked feature flag ${linked?.key ?? id} already has a feature attached to it.`);
    }
    await auditFeature(client, actor, row, 'created', { flag: row.flag.key });
    return row;
  });
}

/** Lets who enrols have the flag, or nobody any more. */
async function setEnrollment(
  client: Transaction,
  deps: FlagCommandDependencies,
  actor: Actor,
  flag: FlagRow,
  stage: Stage,
): Promise<void> {
  const { feature_enrollment: now } = JSON.parse(flag.filters) as { feature_enrollment?: unknown };
  if ((now === true) === opensFlag(stage)) return;
  const key = { projectId: flag.project_id, flagId: flag.id };
  await changeFlagIn(client, deps, actor, key, { filters: enrollment(stage) });
}

/** Lets everybody have the flag, whatever they have chosen. */
async function openToAll(
  client: Transaction,
  deps: FlagCommandDependencies,
  actor: Actor,
  flag: FlagRow,
): Promise<void> {
  const key = { projectId: flag.project_id, flagId: flag.id };
  await changeFlagIn(client, deps, actor, key, {
    filters: { feature_enrollment: null, groups: [{ properties: [], rollout_percentage: 100 }] },
  });
}

/** Changes a feature. A stage that people may enrol in opens its flag to them, and another one closes it. */
export function changeFeature(
  deps: FlagCommandDependencies,
  actor: Actor,
  key: EarlyAccessKey,
  patch: Partial<EarlyAccessFields>,
  { rollsOutToAll = false }: { rollsOutToAll?: boolean | undefined } = {},
): Promise<EarlyAccessRow> {
  return changeTransaction(deps.pool, key.projectId, async (client) => {
    await lockFlags(client, key.projectId);
    const before = await findEarlyAccess(client, key);
    if (!before) throw refuse.absent();
    const flag = await findFlag(client, { projectId: key.projectId, flagId: before.flag_id });
    if (flag && !flag.deleted) {
      const stage = patch.stage ?? before.stage;
      if (rollsOutToAll && stage === 'general-availability') await openToAll(client, deps, actor, flag);
      else await setEnrollment(client, deps, actor, flag, stage);
    }
    const after = await updateEarlyAccess(client, key, patch);
    if (!after) throw refuse.absent();
    await auditFeature(client, actor, after, 'updated', changes(logged(before), logged(after)));
    return after;
  });
}

/** Deletes a feature. Its flag stays, and nobody has it because of having enrolled. */
export function deleteFeature(
  deps: FlagCommandDependencies,
  actor: Actor,
  key: EarlyAccessKey,
): Promise<void> {
  return changeTransaction(deps.pool, key.projectId, async (client) => {
    await lockFlags(client, key.projectId);
    const row = await findEarlyAccess(client, key);
    if (!row) throw refuse.absent();
    await deleteEarlyAccess(client, key);
    const flag = await findFlag(client, { projectId: key.projectId, flagId: row.flag_id });
    if (flag && !flag.deleted) await setEnrollment(client, deps, actor, flag, 'archived');
    await auditFeature(client, actor, row, 'deleted', {});
  });
}
