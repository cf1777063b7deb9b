import type { Queryable, Transaction } from '../db/pool.ts';
import { findProject } from '../db/projects.ts';
import type { ActionStep } from '../properties/index.ts';
import { refuse } from '../refusals.ts';
import {
  type CohortSource,
  type FunctionSource,
  namedActions,
  namedCohorts,
  namesTestAccounts,
} from './compile.ts';
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

/** Reads the cohorts that filters name. */
export interface FunctionCohorts {
  /** These cohorts and all that they name. One that does not exist is left out. */
  reached(
    queryable: Queryable,
    projectId: number,
    ids: readonly number[],
  ): Promise<(CohortSource & { version: number })[]>;
  /** The versions of these cohorts, as far as they exist. */
  versions(
    queryable: Queryable,
    projectId: number,
    ids: readonly number[],
  ): Promise<ReadonlyMap<number, number>>;
  /** Finds which of these cohorts a project has. They stay until the transaction ends. */
  known(client: Transaction, projectId: number, ids: readonly number[]): Promise<number[]>;
}

/** What reads what filters name. */
export interface Elsewhere {
  actions: Actions;
  cohorts: FunctionCohorts;
}

export interface Found {
  surroundings: Pick<FunctionSource, 'testAccounts' | 'actions' | 'cohorts' | 'now' | 'timezone'>;
  /** Null: the filters take nothing from elsewhere. */
  origins: Origins | null;
}

/** Reads what filters take from elsewhere: conditions of the project, actions, and cohorts. */
export async function surroundingsOf(
  { pool, actions, cohorts }: { pool: Queryable } & Elsewhere,
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
  const asked = namedCohorts(content, testAccounts, steps);
  const reached = asked.length > 0 ? await cohorts.reached(pool, projectId, asked) : [];
  // A cohort that is not there is noted too, so that the function is compiled again when somebody brings it back.
  const named = [...new Set([...asked, ...reached.map(({ id }) => id)])];
  const origins = originsOf(
    namesAccounts ? testAccounts : null,
    versions,
    named,
    new Map(reached.map((one) => [one.id, one.version])),
  );
  const sources = reached.map(({ version: _version, ...one }) => one);
  return {
    surroundings: { testAccounts, actions: [...steps], cohorts: sources, now: Date.now(), timezone },
    origins: ids.length > 0 || namesAccounts || named.length > 0 ? origins : null,
  };
}

/** The version of a cohort that does not exist. */
const GONE = 0;

function originsOf(
  testAccounts: unknown,
  actions: ReadonlyMap<number, number>,
  named: readonly number[],
  versions: ReadonlyMap<number, number>,
): Origins {
  const cohorts = named.toSorted((a, b) => a - b).map((id) => ({ id, version: versions.get(id) ?? GONE }));
  return {
    ...{ testAccounts, actions: [...actions].toSorted(([a], [b]) => a - b) },
    ...(cohorts.length > 0 ? { cohorts } : {}),
  };
}

/** Answers whether something that filters name has changed since they were compiled. */
export async function isOutOfDate(
  { pool, actions, cohorts }: { pool: Queryable } & Elsewhere,
  projectId: number,
  content: Pick<Content, 'filters' | 'mappings'>,
  origins: Origins,
): Promise<boolean> {
  const project = await findProject(pool, projectId);
  if (!project) return false;
  const ids = namedActions(content);
  const versions = ids.length > 0 ? await actions.versions(pool, projectId, ids) : new Map<number, number>();
  const testAccounts = namesTestAccounts(content) ? project.test_account_filters : null;
  // Which cohorts are named changes only with something whose version is compared here.
  const named = (origins.cohorts ?? []).map(({ id }) => id);
  const known = named.length > 0 ? await cohorts.versions(pool, projectId, named) : new Map<number, number>();
  return JSON.stringify(originsOf(testAccounts, versions, named, known)) !== JSON.stringify(origins);
}

/** Refuses to store a function whose cohorts were deleted meanwhile. Those that are there stay until the transaction ends. */
export async function holdCohorts(
  client: Transaction,
  { cohorts }: Pick<Elsewhere, 'cohorts'>,
  projectId: number,
  origins: Origins | null | undefined,
): Promise<void> {
  const ids = (origins?.cohorts ?? []).filter(({ version }) => version !== GONE).map(({ id }) => id);
  if (ids.length === 0) return;
  const known = new Set(await cohorts.known(client, projectId, ids));
  const gone = ids.find((id) => !known.has(id));
  if (gone === undefined) return;
  throw refuse.invalid('filters', `The cohort ${gone} was deleted meanwhile.`, {
    code: 'cohort_does_not_exist',
  });
}
