// Filters against values in memory. Prepared once (patterns compiled, numbers read), run often.
import type { Moment } from './dates.ts';
import type { FilterNode, FilterValue, PropertyFilter } from './filter.ts';
import { FILTER_TESTS } from './filter-tests.ts';
import { FLAG_TESTS } from './flag-tests.ts';
import type { Operator } from './operators.ts';

/** A prepared operator and value: does a property match? undefined: there is no such property. */
export type Test = (property: unknown, moment: Moment) => boolean;

/** What an operator makes of a filter's value, once; errors are the filter's. */
export type TestMaker = (value: FilterValue, operator: Operator) => Test;

export type TestTable = Readonly<Record<Operator, TestMaker>>;

/**
 * - `filter`: as function filters do, which run as bytecode or JavaScript
 * - `flag`: as feature flags do, in this service and in the SDKs
 * docs/properties.md lists where they differ.
 */
export type Semantics = 'filter' | 'flag';

const TABLES: Readonly<Record<Semantics, TestTable>> = { filter: FILTER_TESTS, flag: FLAG_TESTS };

export function prepareTest(filter: PropertyFilter, semantics: Semantics): Test {
  return TABLES[semantics][filter.operator](filter.value, filter.operator);
}

/** Where a condition finds its property; also what decides about cohorts and other flags. */
export type Lookup = (filter: PropertyFilter) => unknown;

/** A filter that is ready to run. */
export type Matcher = (lookup: Lookup, moment: Moment) => boolean;

/** `negation` inverts a condition's result after its errors became "no match". */
export function prepareMatcher(node: FilterNode, semantics: Semantics): Matcher {
  if (node.kind === 'property') {
    const test = prepareTest(node, semantics);
    return (lookup, moment) => test(lookup(node), moment) !== node.negation;
  }
  const matchers = node.values.map((one) => prepareMatcher(one, semantics));
  return node.type === 'AND'
    ? (lookup, moment) => matchers.every((matches) => matches(lookup, moment))
    : (lookup, moment) => matchers.length === 0 || matchers.some((matches) => matches(lookup, moment));
}
