import { FilterError } from './errors.ts';
import type { FilterValue } from './filter.ts';
import type { Operator } from './operators.ts';

const FIRST_VERSION = /\d+(?:\.\d+)+/;

/** Returns the numbers of the first `1.2…` in a text, like Hog's `sortableSemver`. Returns `[]` if there is none. */
export function sortableSemver(text: string): number[] {
  return FIRST_VERSION.exec(text)?.[0].split('.').map(Number) ?? [];
}

/** Compares versions element by element. If one is the beginning of the other, the longer one is greater. */
export function compareVersions(left: readonly number[], right: readonly number[]): number {
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const difference = (left[i] as number) - (right[i] as number);
    if (difference !== 0) return Math.sign(difference);
  }
  return Math.sign(left.length - right.length);
}

/** Returns the range `[low, high)` of a range operator, as version texts. */
export function semverRange(operator: Operator, value: FilterValue): [low: string, high: string] {
  const name = RANGE_NAMES.get(operator) as string;
  if (typeof value !== 'string') throw new FilterError(`${name} operator requires a semver string value`);
  const parts = partsOf(value, operator);
  if (!parts) {
    throw new FilterError(`${name} operator requires a valid semver string (e.g., '1.2.3')`);
  }
  const [major, minor, patch] = [parts[0] as number, parts[1] ?? 0, parts[2] ?? 0];
  const low = `${major}.${minor}.${patch}`;
  if (operator === 'semver_tilde') return [low, `${major}.${minor + 1}.0`];
  if (operator === 'semver_caret') return [low, caretEnd(major, minor, patch)];
  if (parts.length === 1) return [low, `${major + 1}.0.0`];
  if (parts.length === 2) return [low, `${major}.${minor + 1}.0`];
  return [`${low}.0`, `${major}.${minor}.${patch + 1}.0`];
}

const RANGE_NAMES: ReadonlyMap<Operator, string> = new Map([
  ['semver_tilde', 'Tilde'],
  ['semver_caret', 'Caret'],
  ['semver_wildcard', 'Wildcard'],
]);

export const isSemverRange = (operator: Operator): boolean => RANGE_NAMES.has(operator);

/** Returns the end of a caret range. The leftmost part that is not zero may not change. */
function caretEnd(major: number, minor: number, patch: number): string {
  if (major > 0) return `${major + 1}.0.0`;
  return minor > 0 ? `0.${minor + 1}.0` : `0.0.${patch + 1}`;
}

/** Parses the numbers of a version, up to the first hyphen. Returns null if the version is invalid. */
function partsOf(value: string, operator: Operator): number[] | null {
  const text = operator === 'semver_wildcard' ? value.replace(/[.*]+$/, '') : value;
  const base = (text.split('-')[0] as string).split('.');
  if (operator === 'semver_tilde' && base.length < 2) return null;
  const parts = base.slice(0, 3);
  return parts.every((part) => /^\d{1,15}$/.test(part)) ? parts.map(Number) : null;
}
