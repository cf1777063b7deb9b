// Evaluates the operators of filters on values in memory. The results are the same as those of the bytecode from
// `comparisons.ts`.
import { likeMatcher } from '../hog/runtime/operators.ts';
import { parseDate } from '../values/dates.ts';
import { dateOf, finiteNumberOf } from './comparisons.ts';
import { FilterError } from './errors.ts';
import type { Scalar } from './filter.ts';
import { inOrder, looseEquals, type Order, printed, readsAs } from './hog-values.ts';
import { NEGATIVE } from './operators.ts';
import { readRange } from './range.ts';
import { compileRegex } from './regex.ts';
import { compareVersions, semverRange, sortableSemver } from './semver.ts';
import type { Test, TestMaker, TestTable } from './test-table.ts';
import { isCanonicalNumber, textOf } from './values.ts';

const isMissing = (property: unknown): boolean => property === undefined || property === null;

/**
 * Applies a test to each value of a list: any value must pass, or all for negative operators. An empty list always
 * passes.
 */
const forEach =
  (one: (value: Scalar, operator: Parameters<TestMaker>[1]) => Test): TestMaker =>
  (value, operator) => {
    const values = Array.isArray(value) ? value : [value as Scalar];
    if (values.length === 1) return one(values[0] as Scalar, operator);
    if (values.length === 0) return () => true;
    const tests = values.map((single) => one(single, operator));
    return NEGATIVE.has(operator)
      ? (property, moment) => tests.every((test) => test(property, moment))
      : (property, moment) => tests.some((test) => test(property, moment));
  };

const not =
  (make: TestMaker): TestMaker =>
  (value, operator) => {
    const test = make(value, operator);
    return Array.isArray(value) && value.length === 0
      ? () => true
      : (property, moment) => !test(property, moment);
  };

const exact: TestMaker = (value, operator) => {
  if (Array.isArray(value) && value.length > 1) return memberOf(value, operator);
  return forEach((single) => {
    const constant = typeof single === 'boolean' ? String(single) : single;
    return (property) => !isMissing(property) && looseEquals(property, constant);
  })(value, operator);
};

const memberOf: TestMaker = (value, operator) => {
  if (!Array.isArray(value)) throw new FilterError(`${operator} operator requires a list of values`);
  if (value.length === 0) return () => true;
  const members = new Set<unknown>(value.flatMap((one) => [one, ...twins(one)]));
  return (property) => members.has(property);
};

function twins(value: Scalar): Scalar[] {
  if (typeof value !== 'string') return [String(value)];
  if (value === 'true' || value === 'false') return [value === 'true'];
  return isCanonicalNumber(value) ? [Number(value)] : [];
}

const contains: TestMaker = (value, operator) => {
  const needles = (Array.isArray(value) ? value : [value as Scalar]).map((one) => textOf(one).toLowerCase());
  if (needles.length === 0) return () => true;
  const alone = needles.length === 1 && !operator.endsWith('_multi') && !/[%_\\]/.test(needles[0] as string);
  if (alone) return containsLike(textOf(Array.isArray(value) ? (value[0] as Scalar) : (value as Scalar)));
  return (property) => {
    if (isMissing(property)) return false;
    const text = printed(property).toLowerCase();
    return needles.some((needle) => text.includes(needle));
  };
};

/** Tests for a single text as LIKE does. LIKE treats İ and ſ differently from lower-casing. */
function containsLike(needle: string): Test {
  const matches = likeMatcher(`%${needle}%`, true);
  return (property) => !isMissing(property) && matches(printed(property));
}

const regex: TestMaker = forEach((value) => {
  const pattern = textOf(value);
  if (pattern === '') return (property) => !isMissing(property);
  const found = compileRegex(pattern);
  return (property) => {
    if (isMissing(property)) return false;
    const text = printed(property);
    // Hog's match() never matches an empty text, even if the pattern would.
    return text !== '' && found(text);
  };
});

const notRegex: TestMaker = (value, operator) => {
  const tests = (Array.isArray(value) ? value : [value as Scalar]).map((one) => regex(one, operator));
  return (property, moment) => tests.every((test) => !test(property, moment));
};

const ordering = (op: Order): TestMaker =>
  forEach((value) => {
    const constant = finiteNumberOf(value) ?? textOf(value);
    return (property) => !isMissing(property) && inOrder(property, op, constant);
  });

const range =
  (negated: boolean): TestMaker =>
  (value, operator) => {
    const [low, high] = readRange(value, operator);
    return (property) => {
      if (isMissing(property)) return false;
      return negated
        ? readsAs(property) < low || readsAs(property) > high
        : readsAs(property) >= low && readsAs(property) <= high;
    };
  };

const LAST_MOMENT = { now: Date.parse('9999-12-31T23:59:59Z'), timezone: 'UTC' };

const date = (passes: (property: number, value: number) => boolean): TestMaker =>
  forEach((value, operator) => {
    const moments = (moment: Parameters<Test>[1]) =>
      typeof value === 'string' ? dateOf(value, moment) : null;
    // The last moment allows the most relative dates, so a value that fails here is never valid.
    if (moments(LAST_MOMENT) === null) {
      throw new FilterError(`${operator} operator requires a date (2024-01-31) or a relative date (-7d)`);
    }
    return (property, moment) => {
      const instant = isMissing(property) ? null : parseDate(printed(property), moment.timezone);
      const wanted = moments(moment);
      return instant !== null && wanted !== null && passes(instant, wanted);
    };
  });

const versionsOf = (property: unknown): number[] =>
  isMissing(property) ? [] : sortableSemver(printed(property));

const version = (passes: (order: number) => boolean, missing: boolean): TestMaker =>
  forEach((value) => {
    const wanted = sortableSemver(textOf(value));
    return (property) =>
      isMissing(property) && !missing ? false : passes(compareVersions(versionsOf(property), wanted));
  });

const versionRange: TestMaker = forEach((value, operator) => {
  const [low, high] = semverRange(operator, value).map(sortableSemver) as [number[], number[]];
  return (property) => {
    const found = versionsOf(property);
    return compareVersions(found, low) >= 0 && compareVersions(found, high) < 0;
  };
});

const elsewhere: TestMaker = (_value, operator) => {
  throw new FilterError(`The operator ${operator} does not work in this filter`, '', 'unsupported');
};

const is: TestMaker = () => (property) => !isMissing(property);

export const FILTER_TESTS: TestTable = {
  exact,
  is_not: not(exact),
  is_set: is,
  is_not_set: not(is),
  icontains: contains,
  not_icontains: not(contains),
  icontains_multi: contains,
  not_icontains_multi: not(contains),
  starts_with: elsewhere,
  not_starts_with: elsewhere,
  ends_with: elsewhere,
  not_ends_with: elsewhere,
  regex,
  not_regex: notRegex,
  gt: ordering('>'),
  gte: ordering('>='),
  lt: ordering('<'),
  lte: ordering('<='),
  between: range(false),
  not_between: range(true),
  in: memberOf,
  not_in: not(memberOf),
  is_date_exact: date((left, right) => left === right),
  is_date_before: date((left, right) => left < right),
  is_date_after: date((left, right) => left > right),
  semver_eq: version((order) => order === 0, true),
  semver_neq: version((order) => order !== 0, true),
  semver_gt: version((order) => order > 0, true),
  semver_gte: version((order) => order >= 0, true),
  semver_lt: version((order) => order < 0, false),
  semver_lte: version((order) => order <= 0, false),
  semver_tilde: versionRange,
  semver_caret: versionRange,
  semver_wildcard: versionRange,
  is_cleaned_path_exact: elsewhere,
  flag_evaluates_to: elsewhere,
};
