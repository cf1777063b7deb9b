import { changeTransaction } from '../../db/change-turns.ts';
import type { Pool, Queryable, Transaction } from '../../db/pool.ts';
import { lockProject } from '../../db/projects.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type Activity, audit, changes } from '../../tenancy/audit.ts';
import { checkCohortFilters } from '../check-filters.ts';
import {
  bytesOfCohorts,
  type CohortFields,
  type CohortKey,
  type CohortRow,
  cohortsAsking,
  findCohort,
  hasCohorts,
  insertCohort,
  leadsToCohort,
  lockCohorts,
  missingCohort,
  updateCohort,
} from '../rows/cohorts.ts';
import { COHORT_LIMITS } from '../rules/limits.ts';

/** What the commands of cohorts work with. */
export interface CohortCommandDependencies {
  pool: Pool;
  /** What the cohorts of a project may be together. */
  limits: { bytes: number };
  /** Names the flags of a project that ask about a cohort. */
  flagsAsking(queryable: Queryable, projectId: number, cohortId: number): Promise<readonly { key: string }[]>;
  /** Names the functions of a project whose filters name a cohort, directly or through others. */
  functionsAsking(
    queryable: Queryable,
    projectId: number,
    cohortId: number,
  ): Promise<readonly { id: string; name: string; enabled: boolean }[]>;
  /** Names the batch exports of a project whose filters or columns name a cohort. */
  exportsAsking(
    queryable: Queryable,
    projectId: number,
    cohortId: number,
  ): Promise<readonly { id: string; name: string }[]>;
}

/** What a user sets about a cohort. */
export interface CohortInput {
  name?: string | undefined;
  description?: string | undefined;
  is_static?: boolean | undefined;
  filters?: Record<string, unknown> | undefined;
  deleted?: boolean | undefined;
}

const NO_FILTERS = { properties: { type: 'OR', values: [] } };

const auditCohort = (
  client: Queryable,
  actor: Actor,
  row: CohortRow,
  activity: Activity['activity'],
  detail: Record<string, unknown>,
) =>
  audit(client, actor, {
    scope: 'Cohort',
    itemId: String(row.id),
    projectId: row.project_id,
    activity,
    detail,
  });

const logged = (row: CohortRow) => ({
  name: row.name,
  description: row.description,
  is_static: row.is_static,
  filters: JSON.parse(row.filters) as unknown,
  deleted: row.deleted,
});

/** Refuses cohorts that do not exist, and circles. A new cohort has no id: nothing names it. Call it under the lock. */
async function checkAsks(
  client: Transaction,
  projectId: number,
  ownId: number | null,
  asks: readonly number[],
): Promise<void> {
  if (asks.length === 0) return;
  const missing = await missingCohort(client, projectId, asks);
  if (missing !== undefined) {
    throw refuse.invalid('filters', `Invalid Cohort ID in filter: there is no cohort ${missing}.`);
  }
  if (ownId !== null && (await leadsToCohort(client, projectId, asks, ownId))) {
    throw refuse.invalid('filters', 'Cohorts cannot reference other cohorts in a loop.');
  }
}

/** Refuses filters that are more than a project may have together. Call it under the lock. */
async function checkRoom(
  { limits }: Pick<CohortCommandDependencies, 'limits'>,
  client: Transaction,
  projectId: number,
  ownId: number | null,
  filters: string,
): Promise<void> {
  const bytes = (await bytesOfCohorts(client, projectId, ownId)) + Buffer.byteLength(filters);
  if (bytes <= limits.bytes) return;
  throw refuse.invalid(
    'filters',
    `The filters of all cohorts of the project would have ${bytes} bytes; ${limits.bytes} are allowed (SLUICE_COHORT_BYTES_PER_PROJECT). Use static cohorts for long lists of persons.`,
    { code: 'limit' },
  );
}

const tooMany = () =>
  refuse.invalid(null, `A project may have ${COHORT_LIMITS.cohorts} cohorts.`, { code: 'limit' });

/** Creates a cohort. */
export async function createCohort(
  deps: CohortCommandDependencies,
  actor: Actor,
  projectId: number,
  input: CohortInput & { name: string },
): Promise<CohortRow> {
  const isStatic = input.is_static ?? false;
  if (!isStatic && input.filters === undefined) {
    throw refuse.invalid('filters', 'This field is required for a cohort that is not static.', {
      code: 'required',
    });
  }
  const filters = isStatic ? NO_FILTERS : (input.filters ?? NO_FILTERS);
  const asks = isStatic ? [] : checkCohortFilters(filters);
  const text = JSON.stringify(filters);
  return changeTransaction(deps.pool, projectId, async (client) => {
    if (!(await lockProject(client, projectId))) throw refuse.absent('Project not found.');
    await lockCohorts(client, projectId);
    if (await hasCohorts(client, projectId, COHORT_LIMITS.cohorts)) throw tooMany();
    await checkRoom(deps, client, projectId, null, text);
    await checkAsks(client, projectId, null, asks);
    const row = await insertCohort(client, {
      ...{ name: input.name, description: input.description ?? '', is_static: isStatic },
      ...{ filters: text, deleted: false, project_id: projectId },
      created_by: actor.kind === 'user' ? actor.userId : null,
    });
    await auditCohort(client, actor, row, 'created', { name: row.name });
    return row;
  });
}

/** Changes a cohort. `deleted` deletes it, and brings it back. Its filters are replaced as a whole. */
export async function changeCohort(
  deps: CohortCommandDependencies,
  actor: Actor,
  key: CohortKey,
  input: CohortInput,
): Promise<CohortRow> {
  const { projectId, cohortId } = key;
  const newAsks = input.filters && checkCohortFilters(input.filters);
  return changeTransaction(deps.pool, projectId, async (client) => {
    await lockCohorts(client, projectId);
    // A flag that is about to name the cohort holds its row. Whoever deletes it waits, and then sees the flag.
    const before = await findCohort(client, key, { lock: true });
    const returns = before?.deleted === true && input.deleted === false;
    if (!before || (before.deleted && !returns)) throw refuse.absent();
    if (input.is_static !== undefined && input.is_static !== before.is_static) {
      throw refuse.invalid('is_static', 'A cohort stays static, or not. Create another one.');
    }
    const fields: CohortFields = {
      name: input.name ?? before.name,
      description: input.description ?? before.description,
      is_static: before.is_static,
      filters: before.filters,
      deleted: input.deleted ?? before.deleted,
    };
    if (input.filters !== undefined && !before.is_static) fields.filters = JSON.stringify(input.filters);
    if (!before.is_static && !fields.deleted && (input.filters !== undefined || returns)) {
      if (returns || Buffer.byteLength(fields.filters) > Buffer.byteLength(before.filters)) {
        await checkRoom(deps, client, projectId, cohortId, fields.filters);
      }
      const asks = newAsks ?? checkCohortFilters(JSON.parse(fields.filters));
      await checkAsks(client, projectId, cohortId, asks);
    }
    if (returns && (await hasCohorts(client, projectId, COHORT_LIMITS.cohorts))) throw tooMany();
    if (fields.deleted && !before.deleted) await checkUse(deps, client, key);
    const after = await updateCohort(client, key, fields);
    if (!after) throw refuse.absent();
    const what = after.deleted ? 'deleted' : 'updated';
    await auditCohort(client, actor, after, what, {
      name: after.name,
      ...changes(logged(before), logged(after)),
    });
    return after;
  });
}

/** Refuses to delete a cohort that a flag, a batch export, an enabled function or another cohort asks about. */
async function checkUse(
  deps: CohortCommandDependencies,
  client: Transaction,
  { projectId, cohortId }: CohortKey,
): Promise<void> {
  const flags = await deps.flagsAsking(client, projectId, cohortId);
  if (flags.length > 0) {
    const named = flags
      .slice(0, 5)
      .map((flag) => flag.key)
      .join(', ');
    throw refuse.invalid(
      null,
      `This cohort is used in ${flags.length} active feature flag(s): ${named}. Please remove the cohort from these feature flags before deleting it.`,
    );
  }
  const exports = await deps.exportsAsking(client, projectId, cohortId);
  if (exports.length > 0) {
    const named = exports.slice(0, 5).map(({ id, name }) => `"${name}" (${id})`);
    throw refuse.invalid(
      null,
      `Cannot delete this cohort because batch exports use it: ${named.join(', ')}.`,
    );
  }
  const functions = await deps.functionsAsking(client, projectId, cohortId);
  const enabled = functions.filter((one) => one.enabled);
  if (enabled.length > 0) {
    const named = enabled.slice(0, 5).map(({ id, name }) => `"${name}" (${id})`);
    throw refuse.invalid(
      null,
      `Cannot delete this cohort because enabled functions use it: ${named.join(', ')}.`,
    );
  }
  const asking = await cohortsAsking(client, projectId, cohortId);
  if (asking.length > 0) {
    const named = asking.slice(0, 5).map((row) => row.id);
    throw refuse.invalid(
      null,
      `Cannot delete this cohort because other cohorts use it: ${named.join(', ')}.`,
    );
  }
}
