import type { Queryable } from '../db/pool.ts';
import { findProject } from '../db/projects.ts';
import type { ActionStep } from '../properties/index.ts';
import { refuse } from '../refusals.ts';
import { type FunctionSource, namedActions, namesTestAccounts } from './compile.ts';
import type { Origins } from './rows/functions.ts';
import type { Content } from './rules/definition.ts';

/** Reads the actions that filters name. */
export interface Actions {
  /** The steps by the id of the action. An action that does not exist is not in the map. */
  steps(
    queryable: Queryable,
    projectId: number,
    ids: readonly number[],
  ): Promise<ReadonlyMap<number, readonly ActionStep[]>>;
  /** The versions by the id of the action. Each change of an action makes another version. */
  versions(
    queryable: Queryable,
    projectId: number,
    ids: readonly number[],
  ): Promise<ReadonlyMap<number, number>>;
}

export interface Found {
  surroundings: Pick<FunctionSource, 'testAccounts' | 'actions' | 'now' | 'timezone'>;
  /** Null: the filters take nothing from elsewhere. */
  origins: Origins | null;
}

/** Reads what filters take from elsewhere: conditions of the project, and actions. */
export async function surroundingsOf(
  { pool, actions }: { pool: Queryable; actions: Actions },
  projectId: number,
  content: Pick<Content, 'filters' | 'mappings'>,
): Promise<Found> {
  const project = await findProject(pool, projectId);
  if (!project) throw refuse.absent('Project not found.');
  const { test_account_filters: testAccounts, timezone } = project;
  const ids = namedActions(content);
  const namesAccounts = namesTestAccounts(content);
  // Versions first: a change between the two questions is then noticed later, and not lost.
  const versions = ids.length > 0 ? await actions.versions(pool, projectId, ids) : new Map<number, number>();
  const steps = ids.length > 0 ? await actions.steps(pool, projectId, ids) : new Map<number, ActionStep[]>();
  const origins = { testAccounts: namesAccounts ? testAccounts : null, actions: sorted(versions) };
  return {
    surroundings: { testAccounts, actions: [...steps], now: Date.now(), timezone },
    origins: ids.length > 0 || namesAccounts ? origins : null,
  };
}

const sorted = (versions: ReadonlyMap<number, number>) => [...versions].toSorted(([a], [b]) => a - b);

/** Answers whether something that filters name has changed since they were compiled. */
export async function isOutOfDate(
  { pool, actions }: { pool: Queryable; actions: Actions },
  projectId: number,
  content: Pick<Content, 'filters' | 'mappings'>,
  origins: Origins,
): Promise<boolean> {
  const project = await findProject(pool, projectId);
  if (!project) return false;
  const ids = namedActions(content);
  const versions = ids.length > 0 ? await actions.versions(pool, projectId, ids) : new Map<number, number>();
  const testAccounts = namesTestAccounts(content) ? project.test_account_filters : null;
  return JSON.stringify({ testAccounts, actions: sorted(versions) }) !== JSON.stringify(origins);
}
