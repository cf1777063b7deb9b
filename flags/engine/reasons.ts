/** Why a flag has its value, as SDKs read it. */
export type ReasonCode =
  | 'override'
  | 'condition_match'
  | 'no_condition_match'
  | 'out_of_rollout_bound'
  | 'no_group_type'
  | 'super_condition_value'
  | 'holdout_condition_value'
  | 'missing_dependency'
  | FailureCode;

/** Why a flag could not be computed. */
export type FailureCode =
  | 'dependency_not_found_cohort'
  | 'dependency_cycle_cohort'
  | 'database_error'
  | 'hash_key_override_error'
  | 'internal_error';

const TEXTS: Readonly<Record<ReasonCode, string>> = {
  override: 'Set by hand for this distinct id',
  condition_match: 'Matched condition set',
  no_condition_match: 'No matching condition set',
  out_of_rollout_bound: 'Out of rollout bound',
  no_group_type: 'No group type',
  super_condition_value: 'Super condition value',
  holdout_condition_value: 'Holdout condition value',
  missing_dependency: 'Flag cannot be evaluated due to missing dependency',
  dependency_not_found_cohort: 'Cohort dependency not found',
  dependency_cycle_cohort: 'Cohort dependency cycle',
  database_error: 'Database error',
  hash_key_override_error: 'Hash key override error',
  internal_error: 'Internal error',
};

const SKIPPED_GROUPS =
  'No matching condition set (group conditions were not evaluated because no group type was provided)';

/** The sentence of a reason. */
export function describe(code: ReasonCode, conditionIndex: number | null, skippedGroups: boolean): string {
  if (code === 'condition_match') return `${TEXTS[code]} ${(conditionIndex ?? 0) + 1}`;
  return code === 'no_condition_match' && skippedGroups ? SKIPPED_GROUPS : TEXTS[code];
}

/** Which of the reasons of the conditions that did not match is told: the highest. */
export const SCORES = {
  out_of_rollout_bound: 3,
  no_condition_match: 2,
  no_group_type: 1,
} as const;
