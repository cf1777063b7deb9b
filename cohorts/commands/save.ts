import { type Pool, type Queryable, type Transaction, transaction } from '../../db/pool.ts';
import { lockProject } from '../../db/projects.ts';
import { type CohortDefinition, Cohorts } from '../../properties/index.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type Activity, audit, changes } from '../../tenancy/audit.ts';
import { checkCohortFilters } from '../check-filters.ts';
import {
  type CohortFields,
  type CohortKey,
  type CohortRow,
  findCohort,
  hasCohorts,
  insertCohort,
  lockCohorts,
  updateCohort,
} from '../rows/cohorts.ts';
import { readCohortDefinitions } from '../rows/definitions.ts';
import { COHORT_LIMITS } from '../rules/limits.ts';

/** What the commands of cohorts work with. */
export interface CohortCommandDependencies {
  pool: Pool;
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

/** Refuses cohorts that do not exist, and circles. Call it under the lock. */
async function checkAsks(
  client: Transaction,
  projectId: number,
  own: CohortDefinition,
  asks: readonly number[],
): Promise<void> {
  if (asks.length === 0) return;
  const rows = await readCohortDefinitions(client, projectId);
  const ids = new Set(rows.map((row) => row.id));
  const missing = asks.find((id) => !ids.has(id));
  if (missing !== undefined) {
    throw refuse.invalid('filters', `Invalid Cohort ID in filter: there is no cohort ${missing}.`);
  }
  const others = rows
    .filter((row) => row.id !== own.id)
    .map((row) => ({ id: row.id, isStatic: row.is_static, filters: JSON.parse(row.filters) as unknown }));
  if (new Cohorts([...others, own]).failureOf(own.id) === 'dependency_cycle_cohort') {
    throw refuse.invalid('filters', 'Cohorts cannot reference other cohorts in a loop.');
  }
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
  return transaction(deps.pool, async (client) => {
    if (!(await lockProject(client, projectId))) throw refuse.absent('Project not found.');
    await lockCohorts(client, projectId);
    if (await hasCohorts(client, projectId, COHORT_LIMITS.cohorts)) throw tooMany();
    await checkAsks(client, projectId, { id: 0, isStatic, filters }, asks);
    const row = await insertCohort(client, {
      ...{ name: input.name, description: input.description ?? '', is_static: isStatic },
      ...{ filters: JSON.stringify(filters), deleted: false, project_id: projectId },
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
  return transaction(deps.pool, async (client) => {
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
      const filters: unknown = JSON.parse(fields.filters);
      const asks = newAsks ?? checkCohortFilters(filters);
      await checkAsks(client, projectId, { id: cohortId, isStatic: false, filters }, asks);
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
    throw refuse.invalid(null, `Cannot delete this cohort because feature flags use it: ${named}.`);
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

/** Lists the cohorts that name a cohort. */
export async function cohortsAsking(
  queryable: Queryable,
  projectId: number,
  cohortId: number,
): Promise<{ id: number; name: string }[]> {
  const rows = await readCohortDefinitions(queryable, projectId);
  return rows
    .filter((row) => row.id !== cohortId && !row.is_static && names(row.filters, cohortId))
    .map(({ id, name }) => ({ id, name }));
}

/** Whether stored filters name a cohort. */
function names(filters: string, cohortId: number): boolean {
  const seek = (node: unknown): boolean => {
    if (typeof node !== 'object' || node === null) return false;
    const { values, type, value } = node as Record<string, unknown>;
    if (Array.isArray(values)) return values.some(seek);
    return (type === 'cohort' || type === 'static-cohort') && Number(value) === cohortId;
  };
  return seek((JSON.parse(filters) as { properties?: unknown }).properties);
}
