// Builds the expression for one operator and one value. The expressions have the same form as PostHog's, so the stored
// bytecode is the same too. PostHog's own engines disagree about missing properties; where they do, a guard is added
// (docs/properties.md).
import { build, type CompareOperator, type Expr } from '../hog/ast/index.ts';
import { type Moment, parseDate, parseRelativeDate } from '../values/dates.ts';
import { FilterError } from './errors.ts';
import type { FilterValue, Scalar } from './filter.ts';
import { conjunction, disjunction, NULL } from './nodes.ts';
import type { Operator } from './operators.ts';
import { readRange } from './range.ts';
import { compileRegex } from './regex.ts';
import { isSemverRange, semverRange } from './semver.ts';
import { asciiLower, isCanonicalNumber, numberOf, textOf } from './values.ts';

export interface Subject {
  /** The property or column that is compared. */
  expr: Expr;
  /** True if the property is declared as a boolean. The values "true" and "false" are then compared as booleans. */
  boolean: boolean;
}

type Comparison = (subject: Subject, value: FilterValue, moment: Moment, operator: Operator) => Expr;

/** The text of a missing property in Hog. Patterns that match it need a guard. */
const MISSING_AS_TEXT = 'null';

export function comparison(subject: Subject, operator: Operator, value: FilterValue, moment: Moment): Expr {
  return checkSupport(operator)(subject, value, moment, operator);
}

/** Returns the comparison of an operator. Refuses operators that only work in feature flags. */
export function checkSupport(operator: Operator): Comparison {
  const make = COMPARISONS[operator];
  if (make) return make;
  throw new FilterError(`The operator ${operator} does not work in this filter`, '', 'unsupported');
}

const isSet = (expr: Expr): Expr => build.compare('!=', expr, NULL);
const isMissing = (expr: Expr): Expr => build.compare('==', expr, NULL);
const text = (expr: Expr): Expr => build.call('toString', expr);

function constantOf(subject: Subject, value: Scalar): Expr {
  if (typeof value === 'number') return build.literal(value);
  if (value === true || value === 'true') return build.constant(subject.boolean ? true : 'true');
  if (value === false || value === 'false') return build.constant(subject.boolean ? false : 'false');
  return build.constant(value);
}

const equality =
  (op: '==' | '!='): Comparison =>
  (subject, value) =>
    build.compare(op, subject.expr, constantOf(subject, scalar(value)));

/** Builds a membership test. It is strict about types in bytecode, so `"5"` also adds 5, and `"true"` adds true. */
const membership =
  (op: 'in' | 'not in', wrap: (exprs: Expr[]) => Expr): Comparison =>
  (subject, value, _moment, operator) => {
    if (!Array.isArray(value)) throw new FilterError(`${operator} operator requires a list of values`);
    const members = new Map<string, Scalar>();
    for (const one of value) {
      for (const form of [one, twinOf(one)]) {
        if (form !== null) members.set(`${typeof form}:${form}`, form);
      }
    }
    return build.compare(op, subject.expr, wrap([...members.values()].map((one) => build.literal(one))));
  };

export const inTuple = membership('in', build.tuple);
export const notInTuple = membership('not in', build.tuple);

function twinOf(value: Scalar): Scalar | null {
  if (typeof value !== 'string') return String(value);
  if (value === 'true' || value === 'false') return value === 'true';
  return isCanonicalNumber(value) ? Number(value) : null;
}

const contains =
  (negated: boolean): Comparison =>
  (subject, value) => {
    const needle = textOf(scalar(value));
    // These characters have a meaning in LIKE, which also differs between engines.
    const test = /[%_\\]/.test(needle)
      ? searchAny(subject.expr, [needle], negated)
      : build.compare(negated ? 'not ilike' : 'ilike', text(subject.expr), build.constant(`%${needle}%`));
    const searched = negated && test.kind === 'compare' && test.op === '==';
    return guarded(subject.expr, test, searched || MISSING_AS_TEXT.includes(asciiLower(needle)), negated);
  };

export const containsAny =
  (negated: boolean): Comparison =>
  (subject, value) => {
    const needles = (Array.isArray(value) ? value : [scalar(value)]).map(textOf);
    const seen = needles.some((needle) => MISSING_AS_TEXT.includes(asciiLower(needle)));
    // In SQL, a search in NULL yields NULL, not 0.
    return guarded(subject.expr, searchAny(subject.expr, needles, negated), negated || seen, negated);
  };

function searchAny(expr: Expr, needles: string[], negated: boolean): Expr {
  const list = build.array(needles.map((needle) => build.constant(needle)));
  const found = build.call('multiSearchAnyCaseInsensitive', text(expr), list);
  return build.compare(negated ? '==' : '>', found, build.integer(0));
}

const regex =
  (negated: boolean): Comparison =>
  (subject, value) => {
    const pattern = textOf(scalar(value));
    // In Hog, the empty pattern matches nothing; elsewhere it matches every text.
    if (pattern === '') return negated ? isMissing(subject.expr) : isSet(subject.expr);
    const seen = compileRegex(pattern)(MISSING_AS_TEXT);
    const match = build.call('match', text(subject.expr), build.constant(pattern));
    const test = negated
      ? build.call('ifNull', build.call('not', match), build.integer(1))
      : build.call('ifNull', match, build.integer(0));
    return guarded(subject.expr, test, seen, negated);
  };

/**
 * Adds a check for a missing property, if it is needed. A missing property fails a positive test and passes a negated
 * one.
 */
function guarded(expr: Expr, test: Expr, needed: boolean, negated: boolean): Expr {
  if (!needed) return test;
  return negated ? disjunction([isMissing(expr), test]) : conjunction([isSet(expr), test]);
}

const ordering =
  (op: '<' | '<=' | '>' | '>='): Comparison =>
  (subject, value) =>
    ordered(subject.expr, op, scalar(value));

/**
 * Builds an ordered comparison. In bytecode, `<` and `>` treat a missing property as 0. If 0 would pass the test, a
 * check that the property is set is added.
 */
function ordered(expr: Expr, op: '<' | '<=' | '>' | '>=', value: Scalar): Expr {
  const number = finiteNumberOf(value);
  const text = textOf(value);
  const test = build.compare(op, expr, number === null ? build.constant(text) : build.literal(number));
  // JavaScript also reads other texts as numbers, such as '' and '0x10'.
  return satisfies(0, op, number ?? Number(text)) ? conjunction([isSet(expr), test]) : test;
}

export function finiteNumberOf(value: Scalar): number | null {
  const number = numberOf(value);
  if (number === null || Number.isFinite(number)) return number;
  throw new FilterError('This number is too large');
}

const satisfies = (left: number, op: '<' | '<=' | '>' | '>=', right: number): boolean =>
  (op.startsWith('<') ? left < right : left > right) || (op.length === 2 && left === right);

const range =
  (negated: boolean): Comparison =>
  ({ expr }, value, _moment, operator) => {
    const [low, high] = readRange(value, operator);
    const [left, right] = [build.literal(low), build.literal(high)];
    const test = negated
      ? disjunction([build.compare('<', expr, left), build.compare('>', expr, right)])
      : conjunction([build.compare('>=', expr, left), build.compare('<=', expr, right)]);
    const zeroPasses = (low <= 0 && 0 <= high) !== negated;
    return zeroPasses ? conjunction([isSet(expr), test]) : test;
  };

const date =
  (op: '==' | '<' | '>'): Comparison =>
  (subject, value, moment, operator) => {
    const instant = typeof value === 'string' ? dateOf(value, moment) : null;
    if (instant === null) {
      throw new FilterError(`${operator} operator requires a date (2024-01-31) or a relative date (-7d)`);
    }
    const zone = moment.timezone === 'UTC' ? [] : [build.constant(moment.timezone)];
    return build.compare(
      op,
      build.call('toDateTime', text(subject.expr), ...zone),
      build.call('toDateTime', build.constant(new Date(instant).toISOString())),
    );
  };

/** The first and last instants of the years that every engine supports: 1 to 9999. */
const FIRST_INSTANT = Date.parse('0001-01-01T00:00:00Z');
const END_OF_TIME = Date.parse('+010000-01-01T00:00:00Z');

export function dateOf(value: string, moment: Moment): number | null {
  const instant = parseRelativeDate(value, moment) ?? parseDate(value, moment.timezone);
  return instant !== null && FIRST_INSTANT <= instant && instant < END_OF_TIME ? instant : null;
}

const version =
  (op: CompareOperator): Comparison =>
  ({ expr }, value) => {
    const test = build.compare(
      op,
      build.call('sortableSemver', expr),
      build.call('sortableSemver', build.constant(textOf(scalar(value)))),
    );
    // A missing version sorts before every version.
    return op.startsWith('<') ? conjunction([isSet(expr), test]) : test;
  };

const versionRange: Comparison = ({ expr }, value, _moment, operator) => {
  if (!isSemverRange(operator)) throw new FilterError(`${operator} is not an operator for version ranges`);
  const [low, high] = semverRange(operator, value);
  const sortable = build.call('sortableSemver', expr);
  return conjunction([
    build.compare('>=', sortable, build.call('sortableSemver', build.constant(low))),
    build.compare('<', sortable, build.call('sortableSemver', build.constant(high))),
  ]);
};

function scalar(value: FilterValue): Scalar {
  if (value === null || Array.isArray(value)) throw new FilterError('A single value is needed here');
  return value;
}

const COMPARISONS: Partial<Record<Operator, Comparison>> = {
  exact: equality('=='),
  is_not: equality('!='),
  is_set: ({ expr }) => isSet(expr),
  is_not_set: ({ expr }) => isMissing(expr),
  icontains: contains(false),
  not_icontains: contains(true),
  icontains_multi: containsAny(false),
  not_icontains_multi: containsAny(true),
  regex: regex(false),
  not_regex: regex(true),
  gt: ordering('>'),
  gte: ordering('>='),
  lt: ordering('<'),
  lte: ordering('<='),
  between: range(false),
  not_between: range(true),
  in: membership('in', build.array),
  not_in: membership('not in', build.array),
  is_date_exact: date('=='),
  is_date_before: date('<'),
  is_date_after: date('>'),
  semver_eq: version('=='),
  semver_neq: version('!='),
  semver_gt: version('>'),
  semver_gte: version('>='),
  semver_lt: version('<'),
  semver_lte: version('<='),
  semver_tilde: versionRange,
  semver_caret: versionRange,
  semver_wildcard: versionRange,
};
