// What a table of tests is made of: both tables and the matcher that picks from them use these types.
import type { Moment } from '../values/dates.ts';
import type { FilterValue } from './filter.ts';
import type { Operator } from './operators.ts';

/** Answers whether a property matches a prepared operator and value. `undefined`: the property is missing. */
export type Test = (property: unknown, moment: Moment) => boolean;

/** Prepares a test from the value of a filter, once. What it throws is a fault of the filter. */
export type TestMaker = (value: FilterValue, operator: Operator) => Test;

export type TestTable = Readonly<Record<Operator, TestMaker>>;
