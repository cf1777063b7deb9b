import { isObject } from '../../values/json-object.ts';

/** A place at which two documents differ. */
export interface Difference {
  /** Such as `filters.groups.0.rollout_percentage`. */
  path: string;
  /** Absent: there is nothing at this place. */
  before?: unknown;
  after?: unknown;
}

/** More are left out. */
export const MOST_DIFFERENCES = 100;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  isObject(value) && value.constructor === Object;

/** Finds where two documents of JSON differ, in the order of the later one. */
export function differencesOf(before: unknown, after: unknown): Difference[] {
  const found: Difference[] = [];
  const add = (path: string, sides: Omit<Difference, 'path'>) => {
    if (found.length < MOST_DIFFERENCES) found.push({ path, ...sides });
  };
  const compare = (left: unknown, right: unknown, path: string): void => {
    if (found.length >= MOST_DIFFERENCES) return;
    const both = isRecord(left) && isRecord(right);
    if (!both && !(Array.isArray(left) && Array.isArray(right))) {
      if (JSON.stringify(left) !== JSON.stringify(right)) add(path, { before: left, after: right });
      return;
    }
    const [from, to] = [left as Record<string, unknown>, right as Record<string, unknown>];
    const keys = new Set([...Object.keys(to), ...Object.keys(from)]);
    for (const key of keys) {
      const place = path === '' ? key : `${path}.${key}`;
      if (!Object.hasOwn(from, key)) add(place, { after: to[key] });
      else if (!Object.hasOwn(to, key)) add(place, { before: from[key] });
      else compare(from[key], to[key], place);
    }
  };
  compare(before, after, '');
  return found;
}
