export { type ActionStep, actionExpression, checkStep, type TextMatching } from './actions.ts';
export {
  COHORT_IDS,
  COHORT_TEST,
  CohortInliner,
  cohortTest,
  INLINE_LIMITS,
  LISTED_TEST,
} from './cohort-expression.ts';
export { FilterError, type FilterErrorCode } from './errors.ts';
export { type ExpressionOptions, filterExpression, hogqlFilters, hogqlSources } from './expression.ts';
export type { FilterGroup, FilterNode, FilterType, FilterValue, PropertyFilter, Scalar } from './filter.ts';
export * from './function-filters.ts';
export { personProperty, withInitial } from './initial-properties.ts';

export {
  type Lookup,
  type Matcher,
  passes,
  prepareMatcher,
  prepareTest,
  type Semantics,
} from './matcher.ts';

export {
  type CohortDefinition,
  type CohortMember,
  type CohortNeeds,
  Cohorts,
  cohortsNamedBy,
  type MembershipFailure,
  prepareCohort,
} from './memberships.ts';
export { NEGATIVE, OPERATORS, type Operator, operatorOf } from './operators.ts';
export { FILTER_LIMITS, FilterBudget, type ReadOptions, readFilters } from './read.ts';
export { compileRegex } from './regex.ts';
export { isReadableVersion } from './strict-semver.ts';
export type { Test } from './test-table.ts';
export { isReadableDate } from './values.ts';
