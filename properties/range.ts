import { FilterError } from './errors.ts';
import type { FilterValue } from './filter.ts';
import type { Operator } from './operators.ts';
import { numberOf } from './values.ts';

export const RANGE_OPERATORS: ReadonlySet<Operator> = new Set(['between', 'not_between']);

/** Reads the two ends of a range. Refuses a value that is not a valid range. */
export function readRange(value: FilterValue, operator: Operator): [low: number, high: number] {
  if (!Array.isArray(value) || value.length !== 2) {
    throw new FilterError(`${operator} operator requires a two-element array [min, max]`);
  }
  const [low, high] = value.map(numberOf) as [number | null, number | null];
  if (low === null || high === null || !Number.isFinite(low) || !Number.isFinite(high)) {
    throw new FilterError(`${operator} operator requires numeric values`);
  }
  if (low > high) {
    throw new FilterError(`${operator} operator requires min value to be less than or equal to max value`);
  }
  return [low, high];
}
