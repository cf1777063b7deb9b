// Evaluates the operators of feature flags. A property is missing if its key is absent; a property that is null counts
// as set. Any problem (invalid number, date, version or pattern) means "no match" and never makes the flag fail.

import type { Moment } from '../values/dates.ts';
import { dateOf } from './comparisons.ts';
import type { FilterValue, Scalar } from './filter.ts';
import { compileRegex } from './regex.ts';
import { compareStrictVersions, isInRange, parseStrictVersion, strictRange } from './strict-semver.ts';
import type { Test, TestMaker, TestTable } from './test-table.ts';
import { asciiLower, numberOf, textOf } from './values.ts';

const never: Test = () => false;

/** Fails for a missing property and for a filter without a value. */
const present =
  (make: (value: Scalar | Scalar[], operator: Parameters<TestMaker>[1]) => Test): TestMaker =>
  (value, operator) => {
    if (value === null) return never;
    const test = make(value, operator);
    return (property, moment) => property !== undefined && test(property, moment);
  };

/** Negates a test. Passes for a missing property, but fails for a filter without a value. */
const negated =
  (make: TestMaker): TestMaker =>
  (value, operator) => {
    if (value === null) return never;
    const test = make(value, operator);
    return (property, moment) => !test(property, moment);
  };

const isTruth = (value: unknown): boolean =>
  value === true || value === false || /^(?:true|false)$/i.test(String(value));
const isTrue = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.every(isTrue)
    : value === true || (typeof value === 'string' && /^true$/i.test(value));

/** Compares booleans by truth, and everything else as text without case. An empty list counts as true. */
const exact = present((value) => {
  const values = Array.isArray(value) ? value : [value];
  if (values.every((one) => typeof one !== 'number' && isTruth(one))) {
    const wanted = isTrue(value);
    return (property) => isTrue(property) === wanted;
  }
  const texts = new Set(values.map((one) => textOf(one).toLowerCase()));
  return (property) => texts.has(textOf(property).toLowerCase());
});

const text = (has: (text: string, value: string) => boolean): TestMaker =>
  present((value) => {
    const wanted = (Array.isArray(value) ? value : [value]).map((one) => asciiLower(textOf(one)));
    const [only] = wanted;
    if (wanted.length === 1 && only !== undefined)
      return (property) => has(asciiLower(textOf(property)), only);
    return (property) => {
      const found = asciiLower(textOf(property));
      return wanted.some((one) => has(found, one));
    };
  });

const contains = text((found, wanted) => found.includes(wanted));
const starts = text((found, wanted) => found.startsWith(wanted));
const ends = text((found, wanted) => found.endsWith(wanted));

/** Tests for a regular expression. An invalid pattern never matches, and its negation does not either. */
const regex =
  (wanted: boolean): TestMaker =>
  (value) => {
    if (value === null) return never;
    try {
      const found = compileRegex(textOf(value));
      return (property) => (property === undefined ? !wanted : found(textOf(property)) === wanted);
    } catch {
      return never;
    }
  };

const ordering = (passes: (left: number, right: number) => boolean): TestMaker =>
  present((value) => {
    const wanted = numberOf(value);
    if (wanted === null) return never;
    return (property) => {
      const found = numberOf(property);
      return found !== null && passes(found, wanted);
    };
  });

const range =
  (wanted: boolean): TestMaker =>
  (value) => {
    const [low, high] = Array.isArray(value) && value.length === 2 ? value.map(numberOf) : [null, null];
    if (low === null || high === null || low === undefined || high === undefined || low > high) return never;
    return (property) => {
      if (property === undefined) return !wanted;
      const found = numberOf(property);
      return found !== null && (low <= found && found <= high) === wanted;
    };
  };

/** Returns the instant of a property. Numbers and numeric strings are seconds since 1970. */
function instantOfProperty(property: unknown, moment: Moment): number | null {
  const seconds = numberOf(property);
  if (seconds !== null) return seconds * 1000;
  return typeof property === 'string' ? dateOf(property, moment) : null;
}

const date = (passes: (left: number, right: number) => boolean): TestMaker =>
  present((value) => {
    if (typeof value !== 'string') return never;
    return (property, moment) => {
      const wanted = dateOf(value, moment);
      const found = instantOfProperty(property, moment);
      return wanted !== null && found !== null && passes(found, wanted);
    };
  });

const version = (passes: (order: number) => boolean): TestMaker =>
  present((value) => {
    const wanted = parseStrictVersion(textOf(value));
    if (wanted === null) return never;
    return (property) => {
      const found = parseStrictVersion(textOf(property));
      return found !== null && passes(compareStrictVersions(found, wanted));
    };
  });

const versionRange = present((value, operator) => {
  const bounds = strictRange(operator, textOf(value));
  if (bounds === null) return never;
  return (property) => {
    const found = parseStrictVersion(textOf(property));
    return found !== null && isInRange(found, bounds);
  };
});

/** Tests membership in a cohort. The lookup returns whether the person is a member, or undefined if that is unknown. */
const member =
  (wanted: boolean): TestMaker =>
  () =>
  (membership) =>
    membership === wanted;

/** Tests the value of another flag. The lookup returns false, true or the variant. */
const evaluates: TestMaker = (value: FilterValue) => (flag) =>
  value === true ? flag !== undefined && flag !== false : flag === value;

const is: TestMaker = () => (property) => property !== undefined;
const isNot: TestMaker = () => (property) => property === undefined;
const cannot: TestMaker = () => never;

export const FLAG_TESTS: TestTable = {
  exact,
  is_not: negated(exact),
  is_set: is,
  is_not_set: isNot,
  icontains: contains,
  not_icontains: negated(contains),
  icontains_multi: contains,
  not_icontains_multi: negated(contains),
  starts_with: starts,
  not_starts_with: negated(starts),
  ends_with: ends,
  not_ends_with: negated(ends),
  regex: regex(true),
  not_regex: regex(false),
  gt: ordering((left, right) => left > right),
  gte: ordering((left, right) => left >= right),
  lt: ordering((left, right) => left < right),
  lte: ordering((left, right) => left <= right),
  between: range(true),
  not_between: range(false),
  in: member(true),
  not_in: member(false),
  is_date_exact: date((left, right) => left === right),
  is_date_before: date((left, right) => left < right),
  is_date_after: date((left, right) => left > right),
  semver_eq: version((order) => order === 0),
  semver_neq: version((order) => order !== 0),
  semver_gt: version((order) => order > 0),
  semver_gte: version((order) => order >= 0),
  semver_lt: version((order) => order < 0),
  semver_lte: version((order) => order <= 0),
  semver_tilde: versionRange,
  semver_caret: versionRange,
  semver_wildcard: versionRange,
  is_cleaned_path_exact: cannot,
  flag_evaluates_to: evaluates,
};
