import { FilterError } from './errors.ts';
import type { FilterValue } from './filter.ts';

/** Returns the cohort ids in the value of a filter. Older clients send ids as texts of digits. */
export function cohortIds(value: FilterValue): number[] {
  const ids = (Array.isArray(value) ? value : [value]).map((one) =>
    typeof one === 'string' && /^\d{1,15}$/.test(one) ? Number(one) : one,
  );
  if (ids.length > 0 && ids.every(isId)) return ids;
  throw new FilterError('A cohort must be given by its id');
}

const isId = (id: unknown): id is number => Number.isSafeInteger(id) && (id as number) >= 0;
