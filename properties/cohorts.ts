import { FilterError } from './errors.ts';
import type { FilterValue } from './filter.ts';

/** The cohorts that a condition names: numbers, or texts of digits, as older clients send them. */
export function cohortIds(value: FilterValue): number[] {
  const ids = (Array.isArray(value) ? value : [value]).map((one) =>
    typeof one === 'string' && /^\d{1,15}$/.test(one) ? Number(one) : one,
  );
  if (ids.length > 0 && ids.every(isId)) return ids;
  throw new FilterError('A cohort is named by its id');
}

const isId = (id: unknown): id is number => Number.isSafeInteger(id) && (id as number) >= 0;
