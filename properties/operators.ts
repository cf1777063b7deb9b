/** All operators of property filters, with their names in the filter JSON. */
export const OPERATORS = [
  'exact',
  'is_not',
  'is_set',
  'is_not_set',
  'icontains',
  'not_icontains',
  'icontains_multi',
  'not_icontains_multi',
  'starts_with',
  'not_starts_with',
  'ends_with',
  'not_ends_with',
  'regex',
  'not_regex',
  'gt',
  'gte',
  'lt',
  'lte',
  'between',
  'not_between',
  'in',
  'not_in',
  'is_date_exact',
  'is_date_before',
  'is_date_after',
  'semver_eq',
  'semver_neq',
  'semver_gt',
  'semver_gte',
  'semver_lt',
  'semver_lte',
  'semver_tilde',
  'semver_caret',
  'semver_wildcard',
  'is_cleaned_path_exact',
  'flag_evaluates_to',
] as const;

export type Operator = (typeof OPERATORS)[number];

/** Other names of operators that older clients send. */
const ALIASES: Readonly<Record<string, Operator>> = { min: 'gte', max: 'lte' };

const KNOWN: ReadonlySet<string> = new Set(OPERATORS);

/** Returns the operator with a name, or null if there is none. A missing name means `exact`. */
export function operatorOf(name: unknown): Operator | null {
  if (name === undefined || name === null || name === '') return 'exact';
  if (typeof name !== 'string') return null;
  if (KNOWN.has(name)) return name as Operator;
  return Object.hasOwn(ALIASES, name) ? (ALIASES[name] as Operator) : null;
}

/** Negative operators. Their lists mean "none of", and a missing property passes most of them. */
export const NEGATIVE: ReadonlySet<Operator> = new Set([
  'is_not',
  'is_not_set',
  'not_icontains',
  'not_icontains_multi',
  'not_starts_with',
  'not_ends_with',
  'not_regex',
  'not_between',
  'not_in',
]);

/** Operators that only test whether a property is set. They need no value. */
export const VALUELESS: ReadonlySet<Operator> = new Set(['is_set', 'is_not_set']);

/** Operators whose value is a list. For other operators, a list means "any of", or "none of" for negative operators. */
export const TAKES_LIST: ReadonlySet<Operator> = new Set([
  'between',
  'not_between',
  'in',
  'not_in',
  'icontains_multi',
  'not_icontains_multi',
]);
