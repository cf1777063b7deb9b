// Reads the `filters` document of functions and exports: events, actions, properties, test accounts.
import { build, type Expr } from '../hog/ast/index.ts';
import { type ActionStep, actionExpression } from './actions.ts';
import { cohortsInHogql } from './cohort-expression.ts';
import { cohortIds } from './cohorts.ts';
import { FilterError } from './errors.ts';
import { type ExpressionOptions, filterExpression, hogqlSources } from './expression.ts';
import type { FilterGroup, FilterNode } from './filter.ts';
import { conjunction, disjunction, TRUE } from './nodes.ts';
import { FilterBudget, readFilters, readFlag, storable } from './read.ts';

export interface FilterEntry {
  type: 'events' | 'actions';
  /** The name of the event (null matches every event), or the id of the action. */
  id: string | number | null;
  properties: FilterGroup;
}

export interface FunctionFilters {
  entries: FilterEntry[];
  properties: FilterGroup;
  filterTestAccounts: boolean;
}

export interface FunctionFilterOptions extends ExpressionOptions {
  /** The project's conditions that exclude events of test accounts. */
  testAccounts?: FilterGroup;
  /** The actions by id. An entry whose action is missing here matches nothing. */
  actions?: ReadonlyMap<number, readonly ActionStep[]>;
}

const MAX_ENTRIES = 500;

export function readFunctionFilters(document: unknown): FunctionFilters {
  const filters = document ?? {};
  if (typeof filters !== 'object' || Array.isArray(filters))
    throw new FilterError('Filters must be an object');
  const { events, actions, properties, filter_test_accounts } = filters as Record<string, unknown>;
  const budget = new FilterBudget();
  return {
    entries: [...readEntries(events, 'events', budget), ...readEntries(actions, 'actions', budget)],
    properties: readFilters(properties, { path: 'properties', budget }),
    filterTestAccounts: readFlag(filter_test_accounts, 'filter_test_accounts'),
  };
}

function readEntries(list: unknown, type: FilterEntry['type'], budget: FilterBudget): FilterEntry[] {
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list)) throw new FilterError(`${type} must be a list`, type);
  if (list.length > MAX_ENTRIES)
    throw new FilterError(`More than ${MAX_ENTRIES} ${type} in one filter`, type);
  return list.map((one: unknown, index): FilterEntry => {
    const path = `${type}.${index}`;
    if (typeof one !== 'object' || one === null || Array.isArray(one)) {
      throw new FilterError('An entry must be an object', path);
    }
    const { id, name, properties } = one as Record<string, unknown>;
    return {
      type,
      id: readId(type, id === undefined ? name : id, path),
      properties: readFilters(properties, { path: `${path}.properties`, budget }),
    };
  });
}

function readId(type: FilterEntry['type'], id: unknown, path: string): string | number | null {
  if (type === 'events') {
    if (id === null || id === undefined) return null;
    if (typeof id === 'string') return storable(id, `${path}.id`);
    throw new FilterError('The id of an event must be its name, a string', `${path}.id`);
  }
  const number = typeof id === 'string' && /^\d+$/.test(id) ? Number(id) : id;
  if (typeof number === 'number' && Number.isSafeInteger(number)) return number;
  throw new FilterError('The id of an action must be a whole number', `${path}.id`);
}

/** Returns the ids of the actions that must be loaded before the filters can be compiled. */
export const actionIds = (filters: FunctionFilters): number[] => [
  ...new Set(filters.entries.flatMap((entry) => (entry.type === 'actions' ? [entry.id as number] : []))),
];

/**
 * Returns the cohorts that the filters name, with those of the test accounts and the actions. HogQL is not parsed, so there may
 * be some that it does not name.
 */
export function functionCohorts(
  filters: FunctionFilters,
  { testAccounts, actions }: Pick<FunctionFilterOptions, 'testAccounts' | 'actions'> = {},
): number[] {
  return [...new Set(groupsOf(filters, { testAccounts, actions }).flatMap(cohortsIn))];
}

function cohortsIn(node: FilterNode): number[] {
  if (node.kind === 'group') return node.values.flatMap(cohortsIn);
  if (node.type === 'hogql') return cohortsInHogql(node.key);
  return node.type === 'cohort' ? cohortIds(node.value) : [];
}

/**
 * Returns the texts of all `hogql` filters that must be parsed before the filters can be compiled. Includes those of
 * the test accounts and the actions.
 */
export function functionHogqlSources(
  filters: FunctionFilters,
  { testAccounts, actions }: Pick<FunctionFilterOptions, 'testAccounts' | 'actions'> = {},
): string[] {
  return [...new Set(groupsOf(filters, { testAccounts, actions }).flatMap(hogqlSources))];
}

function groupsOf(
  filters: FunctionFilters,
  { testAccounts, actions }: Pick<FunctionFilterOptions, 'testAccounts' | 'actions'>,
): FilterGroup[] {
  return [
    ...(filters.filterTestAccounts && testAccounts ? [testAccounts] : []),
    filters.properties,
    ...filters.entries.map((entry) => entry.properties),
    ...actionIds(filters)
      .flatMap((id) => actions?.get(id) ?? [])
      .flatMap((step) => step.properties ?? []),
  ];
}

/**
 * Compiles the filters: test accounts AND every property AND any of the entries. An empty document matches everything.
 */
export function functionFilterExpression(filters: FunctionFilters, options: FunctionFilterOptions): Expr {
  const parts: Expr[] = [];
  if (filters.filterTestAccounts && options.testAccounts) {
    parts.push(...testAccountTests(options.testAccounts, options));
  }
  parts.push(...membersOf(filters.properties, options));
  if (filters.entries.length > 0) {
    parts.push(disjunction(filters.entries.map((entry) => entryExpression(entry, options))));
  }
  return conjunction(parts);
}

/** The conditions of a project that leave out test accounts. What is wrong with them is not in the document at hand. */
function testAccountTests(testAccounts: FilterGroup, options: ExpressionOptions): Expr[] {
  try {
    return membersOf(testAccounts, options);
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    const { message, path, code } = error;
    const place = ['test_account_filters', path].filter(Boolean).join('.');
    throw new FilterError(`${message} (in the project's filters of test accounts)`, place, code);
  }
}

/** Returns the conditions of a group as members of an AND. An OR group is a single member. */
const membersOf = (group: FilterGroup, options: ExpressionOptions): Expr[] =>
  group.type === 'AND'
    ? group.values.map((one) => filterExpression(one, options))
    : [filterExpression(group, options)];

function entryExpression(entry: FilterEntry, options: FunctionFilterOptions): Expr {
  const parts = [entry.type === 'events' ? eventTest(entry) : actionTest(entry, options)];
  if (entry.properties.values.length > 0) parts.push(filterExpression(entry.properties, options));
  return conjunction(parts);
}

const eventTest = (entry: FilterEntry): Expr =>
  entry.id === null ? TRUE : build.compare('==', build.field('event'), build.constant(String(entry.id)));

function actionTest(entry: FilterEntry, options: FunctionFilterOptions): Expr {
  const steps = options.actions?.get(entry.id as number);
  return steps ? actionExpression(steps, options) : build.compare('==', build.integer(1), build.integer(2));
}
