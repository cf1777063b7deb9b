// Filters against values in memory. Prepared once (patterns compiled, numbers read), run often.
import { HogFailure } from '../hog/runtime/errors.ts';
import type { Moment } from '../values/dates.ts';
import { at, FilterError } from './errors.ts';
import type { FilterNode, FilterType, PropertyFilter } from './filter.ts';
import { FILTER_TESTS } from './filter-tests.ts';
import { FLAG_TESTS } from './flag-tests.ts';
import type { Test, TestTable } from './test-table.ts';

/**
 * - `filter`: as function filters do, which run as bytecode or JavaScript
 * - `flag`: as feature flags do, in this service and in the SDKs
 * docs/properties.md lists where they differ.
 */
export type Semantics = 'filter' | 'flag';

const TABLES: Readonly<Record<Semantics, TestTable>> = { filter: FILTER_TESTS, flag: FLAG_TESTS };

/** What is decided elsewhere than by a property, and by whom. */
const NO_PROPERTIES: Partial<Record<FilterType, string>> = {
  hogql: 'HogQL expressions are decided by an engine of expressions',
  cohort: 'Cohorts are decided by queries and flags only',
  flag: 'Conditions on flags work in flags only',
};

export function prepareTest(filter: PropertyFilter, semantics: Semantics): Test {
  const reason = semantics === 'filter' ? NO_PROPERTIES[filter.type] : undefined;
  if (reason !== undefined) throw new FilterError(reason, filter.path, 'unsupported');
  return at(filter.path, () => TABLES[semantics][filter.operator](filter.value, filter.operator));
}

/** A property that cannot be looked at, being thousands of lists inside of one another, matches nothing. */
function answer(test: Test, property: unknown, moment: Moment): boolean {
  try {
    return test(property, moment);
  } catch (error) {
    if (error instanceof RangeError || error instanceof HogFailure) return false;
    throw error;
  }
}

/** Where a condition finds its property; also what decides about cohorts and other flags. */
export type Lookup = (filter: PropertyFilter) => unknown;

/** A filter that is ready to run. */
export type Matcher = (lookup: Lookup, moment: Moment) => boolean;

/** `negation` inverts a condition's result after its errors became "no match". */
export function prepareMatcher(node: FilterNode, semantics: Semantics): Matcher {
  if (node.kind === 'property') {
    const test = prepareTest(node, semantics);
    return (lookup, moment) => answer(test, lookup(node), moment) !== node.negation;
  }
  const matchers = node.values.map((one) => prepareMatcher(one, semantics));
  return node.type === 'AND'
    ? (lookup, moment) => matchers.every((matches) => matches(lookup, moment))
    : (lookup, moment) => matchers.length === 0 || matchers.some((matches) => matches(lookup, moment));
}
