// Compiles property filters to a syntax tree that all back ends can use.
import { build, type Expr } from '../hog/ast/index.ts';
import type { Moment } from '../values/dates.ts';
import { inlineCohorts } from './cohort-expression.ts';
import { cohortIds } from './cohorts.ts';
import { checkSupport, comparison, containsAny, inTuple, notInTuple, type Subject } from './comparisons.ts';
import { selectorTest, tagNameTest } from './elements.ts';
import { at, FilterError } from './errors.ts';
import type { FilterNode, PropertyFilter, Scalar } from './filter.ts';
import { conjunction, disjunction, TRUE } from './nodes.ts';
import { NEGATIVE, TAKES_LIST } from './operators.ts';

export interface ExpressionOptions {
  /** The current time and time zone. Relative dates are resolved when the expression is built. */
  moment: Moment;
  /**
   * Where the expression runs. In `realtime` (bytecode, JavaScript) there are no cohorts. In a query over persons,
   * groups or sessions, properties are those of the row.
   */
  scope: 'realtime' | 'events' | 'persons' | 'groups' | 'sessions';
  /** Returns whether a property is declared as a boolean. */
  isBoolean?: (filter: PropertyFilter) => boolean;
  /** The parsed expressions of `hogql` filters by their text; see `hogqlSources`. */
  hogql?: ReadonlyMap<string, Expr>;
  /** Whether a dot in the key of an event's property leads into an object, as in events of Sluice itself. */
  nestsKeys?: boolean;
  /** Whether the person of an event is in a cohort, for the scope `realtime`. */
  inCohort?: (id: number) => Expr;
  /** The project's rules for cleaning paths, for `is_cleaned_path_exact`. */
  pathCleaning?: { regex: string; alias: string }[];
}

/** Returns the texts of all `hogql` filters of a document. Parse them and pass the results as the option `hogql`. */
export const hogqlSources = (node: FilterNode): string[] => [
  ...new Set(hogqlFilters(node).map((one) => one.key)),
];

/** Lists the `hogql` filters of a document. Their keys are the texts, and their paths say where they stand. */
export function hogqlFilters(node: FilterNode): PropertyFilter[] {
  if (node.kind === 'group') return node.values.flatMap(hogqlFilters);
  return node.type === 'hogql' ? [node] : [];
}

export function filterExpression(node: FilterNode, options: ExpressionOptions): Expr {
  if (node.kind === 'property') return at(node.path, () => negatable(node, options));
  const exprs = node.values.map((one) => filterExpression(one, options));
  return node.type === 'AND' ? conjunction(exprs) : disjunction(exprs);
}

/** Applies the negation of a filter. Cohort filters handle theirs themselves. */
function negatable(filter: PropertyFilter, options: ExpressionOptions): Expr {
  const expr = propertyExpression(filter, options);
  return filter.negation && filter.type !== 'cohort' ? build.not(expr) : expr;
}

function propertyExpression(filter: PropertyFilter, options: ExpressionOptions): Expr {
  switch (filter.type) {
    case 'hogql':
      return hogqlExpression(filter, options);
    case 'cohort':
      return cohortExpression(filter, options);
    case 'flag':
      throw new FilterError('Conditions on flags work in flags only', '', 'unsupported');
    case 'element':
      return elementExpression(filter, options);
    default:
      return compared(
        { expr: subjectOf(filter, options), boolean: options.isBoolean?.(filter) ?? false },
        filter,
        options,
      );
  }
}

function subjectOf(filter: PropertyFilter, options: ExpressionOptions): Expr {
  const { key, type } = filter;
  const own = OWN_TYPE[options.scope];
  if (own !== undefined && type !== own) {
    throw new FilterError(`The '${type}' property filter does not work in '${own}' scope`, '', 'unsupported');
  }
  if (own === 'session') return build.field(key);
  if (own !== undefined) return build.field('properties', key);
  if (type === 'event') {
    if (key === '$elements_chain') return build.field('elements_chain');
    return build.field('properties', ...(options.nestsKeys ? key.split('.') : [key]));
  }
  if (type === 'event_metadata') return build.field(key);
  // `distinct_id` is a field of the event, although users look for it among the person properties.
  if (type === 'person')
    return key === 'distinct_id' ? build.field(key) : build.field('person', 'properties', key);
  if (type === 'group') return build.field(`group_${filter.groupTypeIndex}`, 'properties', key);
  if (type === 'session') return build.field('session', key);
  return build.field('properties', key.startsWith('$feature/') ? key : `$feature/${key}`);
}

const OWN_TYPE: Partial<Record<ExpressionOptions['scope'], PropertyFilter['type']>> = {
  persons: 'person',
  groups: 'group',
  sessions: 'session',
};

/**
 * Builds the comparison with a value or a list. An empty list is no condition. A list of one is that value. A longer
 * list means "any of", or "none of" for negative operators.
 */
function compared(subject: Subject, filter: PropertyFilter, options: ExpressionOptions): Expr {
  const { operator, value } = filter;
  const { moment } = options;
  if (operator === 'is_cleaned_path_exact') return cleanedPath(subject, filter, options);
  checkSupport(operator);
  if (Array.isArray(value) && value.length === 0) return TRUE;
  if (!Array.isArray(value) || TAKES_LIST.has(operator)) {
    return comparison(subject, operator, value, moment);
  }
  if (value.length === 1) return comparison(subject, operator, value[0] as Scalar, moment);
  if (operator === 'exact') return inTuple(subject, value, moment, operator);
  if (operator === 'is_not') return notInTuple(subject, value, moment, operator);
  if (operator === 'icontains' || operator === 'not_icontains') {
    return containsAny(operator === 'not_icontains')(subject, value, moment, operator);
  }
  const tests = value.map((one) => comparison(subject, operator, one, moment));
  return NEGATIVE.has(operator) ? conjunction(tests) : disjunction(tests);
}

function cleanedPath(subject: Subject, filter: PropertyFilter, options: ExpressionOptions): Expr {
  const rules = options.pathCleaning ?? [];
  if (rules.length > 0 && options.scope === 'realtime') {
    throw new FilterError('Cleaned paths cannot be compared in real-time filters', '', 'unsupported');
  }
  const clean = (expr: Expr): Expr =>
    rules.reduce(
      (path, rule) =>
        build.call('replaceRegexpAll', path, build.constant(rule.regex), build.constant(rule.alias)),
      expr,
    );
  const values = Array.isArray(filter.value) ? filter.value : [filter.value as Scalar];
  return disjunction(
    values.map((one) => build.compare('==', clean(subject.expr), clean(build.constant(String(one))))),
  );
}

function hogqlExpression(filter: PropertyFilter, options: ExpressionOptions): Expr {
  const expr = options.hogql?.get(filter.key);
  if (!expr) throw new FilterError('HogQL expressions do not work in this filter', '', 'unsupported');
  return options.inCohort ? inlineCohorts(expr, options.inCohort) : expr;
}

function cohortExpression(filter: PropertyFilter, options: ExpressionOptions): Expr {
  const ids = cohortIds(filter.value);
  const negated = filter.negation !== (filter.operator === 'not_in');
  if (options.scope === 'realtime') {
    if (options.inCohort) {
      const members = ids.map(options.inCohort);
      return negated ? conjunction(members.map((one) => build.not(one))) : disjunction(members);
    }
    throw new FilterError(
      `Can't use cohorts in real-time filters. Please inline the relevant expressions (cohort id=${ids.join(', ')}).`,
      '',
      'unsupported',
    );
  }
  const person = build.field(options.scope === 'persons' ? 'id' : 'person_id');
  const tests = ids.map((id) =>
    build.compare(negated ? 'not in cohort' : 'in cohort', person, build.integer(id)),
  );
  return negated ? conjunction(tests) : disjunction(tests);
}

const ELEMENT_TESTS: Readonly<Record<string, (value: string) => Expr>> = {
  selector: selectorTest,
  tag_name: tagNameTest,
};

function elementExpression(filter: PropertyFilter, options: ExpressionOptions): Expr {
  const { key, operator, value } = filter;
  if (key === 'href')
    return compared({ expr: build.field('elements_chain_href'), boolean: false }, filter, options);
  if (key === 'text') {
    const test = compared({ expr: build.field('text'), boolean: false }, filter, options);
    return build.call('arrayExists', build.lambda(['text'], test), build.field('elements_chain_texts'));
  }
  const test = Object.hasOwn(ELEMENT_TESTS, key) ? ELEMENT_TESTS[key] : undefined;
  if (!test) throw new FilterError(`Elements cannot be filtered by "${key.slice(0, 60)}"`);
  if (operator !== 'exact' && operator !== 'is_not') {
    throw new FilterError(`Elements can only be filtered by ${key} with exact and is_not`);
  }
  const values = Array.isArray(value) ? value : [value as Scalar];
  const tests = values.map((one) => test(String(one)));
  return operator === 'exact' ? disjunction(tests) : conjunction(tests.map((one) => build.call('not', one)));
}
