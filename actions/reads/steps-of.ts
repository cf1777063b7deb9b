import type { Queryable } from '../../db/pool.ts';
import type { ActionStep } from '../../properties/index.ts';
import { listSteps, listVersions, type StepDocument } from '../rows/actions.ts';
import { readSteps } from './read-steps.ts';

/** The largest id that the database has. */
const MAX_ID = 2 ** 31 - 1;
const possible = (ids: readonly number[]) =>
  ids.filter((id) => Number.isInteger(id) && id > 0 && id <= MAX_ID);

/**
 * Returns the steps of these actions of a project, for `functionFilterExpression`. An action that is missing, deleted or of
 * another project is not in the map.
 */
export async function stepsOf(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
): Promise<Map<number, ActionStep[]>> {
  const rows = await listSteps(queryable, projectId, possible(ids));
  return new Map(rows.map((row) => [row.id, readSteps(row.steps)]));
}

/** An action as clients get it that look for its events by themselves. */
export interface ShownAction {
  id: number;
  name: string | null;
  steps: StepDocument[];
}

/** Returns these actions of a project. One that is missing, deleted or of another project is not in the map. */
export async function shownActions(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
): Promise<Map<number, ShownAction>> {
  const rows = await listSteps(queryable, projectId, possible(ids));
  return new Map(rows.map(({ id, name, steps }) => [id, { id, name, steps }]));
}

/**
 * Returns the versions of these actions of a project. What was compiled from an action is out of date if its version
 * differs, or if it is in one of two maps only. Whoever stores versions asks for them before the steps: then a change
 * between the two questions is noticed later, and not lost.
 */
export async function versionsOf(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
): Promise<Map<number, number>> {
  const rows = await listVersions(queryable, projectId, possible(ids));
  return new Map(rows.map((row) => [row.id, row.version]));
}
