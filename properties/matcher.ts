// Tests filters against values in memory. A filter is prepared once (patterns compiled, numbers parsed) and then tested
// many times.
import { HogFailure } from '../hog/runtime/errors.ts';
import type { Moment } from '../values/dates.ts';
import { at, FilterError } from './errors.ts';
import type { FilterNode, FilterType, PropertyFilter } from './filter.ts';
import { FILTER_TESTS } from './filter-tests.ts';
import { FLAG_TESTS } from './flag-tests.ts';
import type { Test, TestTable } from './test-table.ts';

/**
 * The rules by which operators are evaluated:
 *
 * - `filter`: like function filters, which run as bytecode or JavaScript
 * - `flag`: like feature flags in this service and in the SDKs
 *
 * docs/properties.md lists the differences.
 */
export type Semantics = 'filter' | 'flag';

const TABLES: Readonly<Record<Semantics, TestTable>> = { filter: FILTER_TESTS, flag: FLAG_TESTS };

/** The filter types that do not test a property, with the message that refuses them. */
const NO_PROPERTIES: Partial<Record<FilterType, string>> = {
  hogql: 'HogQL expressions do not work in this filter',
  cohort: 'Cohorts work in queries and flags only',
  flag: 'Conditions on flags work in flags only',
};

export function prepareTest(filter: PropertyFilter, semantics: Semantics): Test {
  const reason = semantics === 'filter' ? NO_PROPERTIES[filter.type] : undefined;
  if (reason !== undefined) throw new FilterError(reason, filter.path, 'unsupported');
  return at(filter.path, () => TABLES[semantics][filter.operator](filter.value, filter.operator));
}

/** Runs a test. A property that cannot be evaluated, such as thousands of nested lists, does not match. */
export function passes(test: Test, property: unknown, moment: Moment): boolean {
  try {
    return test(property, moment);
  } catch (error) {
    if (error instanceof RangeError || error instanceof HogFailure) return false;
    throw error;
  }
}

/**
 * Returns the property that a condition tests. For cohort and flag conditions, returns the membership or the flag's
 * value.
 */
export type Lookup = (filter: PropertyFilter) => unknown;

/** A filter that is ready to be tested. */
export type Matcher = (lookup: Lookup, moment: Moment) => boolean;

/** Prepares a filter. An error in a condition counts as "no match", and `negation` then inverts it. */
export function prepareMatcher(node: FilterNode, semantics: Semantics): Matcher {
  if (node.kind === 'property') {
    const test = prepareTest(node, semantics);
    return (lookup, moment) => passes(test, lookup(node), moment) !== node.negation;
  }
  const matchers = node.values.map((one) => prepareMatcher(one, semantics));
  return node.type === 'AND'
    ? (lookup, moment) => matchers.every((matches) => matches(lookup, moment))
    : (lookup, moment) => matchers.length === 0 || matchers.some((matches) => matches(lookup, moment));
}
