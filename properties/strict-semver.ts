// Compares versions as feature flags do: semantic versioning with pre-releases, but lenient about the notation.
import type { Operator } from './operators.ts';

export interface StrictVersion {
  numbers: [major: number, minor: number, patch: number];
  prerelease: string[];
}

const VERSION =
  /^v?(\d{1,15})(?:\.(\d{1,15}))?(?:\.(\d{1,15}))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/i;

/** Parses a version. `v1.2` is 1.2.0, and `01.2.3` is 1.2.3. Returns null if it is invalid. */
export function parseStrictVersion(text: string): StrictVersion | null {
  const match = VERSION.exec(text.trim());
  if (!match) return null;
  const [, major, minor, patch, prerelease] = match;
  return {
    numbers: [Number(major), Number(minor ?? 0), Number(patch ?? 0)],
    prerelease: prerelease === undefined ? [] : prerelease.split('.'),
  };
}

export function compareStrictVersions(left: StrictVersion, right: StrictVersion): number {
  for (let i = 0; i < 3; i++) {
    const difference = (left.numbers[i] as number) - (right.numbers[i] as number);
    if (difference !== 0) return Math.sign(difference);
  }
  return comparePrereleases(left.prerelease, right.prerelease);
}

/**
 * Compares pre-releases. A release is greater than its pre-releases, words are greater than numbers, and a longer list
 * is greater than its beginning.
 */
function comparePrereleases(left: string[], right: string[]): number {
  if (left.length === 0 || right.length === 0) return Math.sign(right.length - left.length);
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const [one, other] = [left[i] as string, right[i] as string];
    if (one === other) continue;
    const [number, otherNumber] = [/^\d+$/.test(one), /^\d+$/.test(other)];
    if (number && otherNumber) return Math.sign(Number(one) - Number(other));
    if (number !== otherNumber) return number ? -1 : 1;
    return one < other ? -1 : 1;
  }
  return Math.sign(left.length - right.length);
}

const released = (major: number, minor: number, patch: number): StrictVersion => ({
  numbers: [major, minor, patch],
  prerelease: [],
});

/** Returns the range `[low, high)` of `~1.2.3`, `^1.2.3` or `1.2.*`. */
export function strictRange(operator: Operator, text: string): [StrictVersion, StrictVersion] | null {
  if (operator === 'semver_wildcard') return wildcardRange(text);
  const low = parseStrictVersion(text.replace(/^[~^]/, ''));
  if (low === null) return null;
  const [major, minor, patch] = low.numbers;
  if (operator === 'semver_tilde') return [low, released(major, minor + 1, 0)];
  if (major > 0) return [low, released(major + 1, 0, 0)];
  return [low, minor > 0 ? released(0, minor + 1, 0) : released(0, 0, patch + 1)];
}

function wildcardRange(text: string): [StrictVersion, StrictVersion] | null {
  const match = /^v?(\d{1,15})(?:\.(\d{1,15}))?\.\*(?:\.\*)?$/i.exec(text.trim());
  if (!match) return null;
  const [major, minor] = [Number(match[1]), match[2]];
  if (minor === undefined) return [released(major, 0, 0), released(major + 1, 0, 0)];
  return [released(major, Number(minor), 0), released(major, Number(minor) + 1, 0)];
}

/**
 * Whether a version is in a range. A pre-release is in it only if the range begins with a pre-release of the same version:
 * nobody who asks for `^1.2.3` means `2.0.0-alpha` or `1.3.0-beta`.
 */
export function isInRange(version: StrictVersion, [low, high]: [StrictVersion, StrictVersion]): boolean {
  const isOther = version.numbers.some((number, index) => number !== low.numbers[index]);
  if (version.prerelease.length > 0 && isOther) return false;
  return compareStrictVersions(version, low) >= 0 && compareStrictVersions(version, high) < 0;
}

/** Whether a flag can compare with this version or range. */
export function isReadableVersion(operator: string, text: string): boolean {
  return /_(?:tilde|caret|wildcard)$/.test(operator)
    ? strictRange(operator as Operator, text) !== null
    : parseStrictVersion(text) !== null;
}
