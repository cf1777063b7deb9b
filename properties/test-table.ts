// The types of a table of tests. Both tables and the matcher use them.
import type { Moment } from '../values/dates.ts';
import type { FilterValue } from './filter.ts';
import type { Operator } from './operators.ts';

/** Tests whether a property matches a prepared operator and value. Undefined means that the property is missing. */
export type Test = (property: unknown, moment: Moment) => boolean;

/** Prepares the test of an operator for the value of a filter. Throws if the value is invalid. */
export type TestMaker = (value: FilterValue, operator: Operator) => Test;

export type TestTable = Readonly<Record<Operator, TestMaker>>;
