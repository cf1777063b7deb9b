export const OPERATIONS = ['update_status', 'add_release_condition', 'update_variants'] as const;
export type Operation = (typeof OPERATIONS)[number];

/** What a scheduled change does. */
export interface ChangePayload {
  operation: Operation;
  value: unknown;
}

type Fields = Record<string, unknown>;

/** What a change sets about the flag as it is then. Undefined: the value does not fit the operation. */
export function changeOfPayload(
  { operation, value }: ChangePayload,
  filters: Fields,
): { active: boolean } | { filters: Fields } | undefined {
  if (operation === 'update_status') return typeof value === 'boolean' ? { active: value } : undefined;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const given = value as Fields;
  if (operation === 'add_release_condition') {
    if (!Array.isArray(given.groups) || given.groups.length === 0) return undefined;
    const groups = Array.isArray(filters.groups) ? filters.groups : [];
    return { filters: { groups: [...groups, ...given.groups] } };
  }
  if (!Array.isArray(given.variants)) return undefined;
  return { filters: { multivariate: { variants: given.variants }, payloads: given.payloads ?? {} } };
}

/** Says what the value of an operation must be. */
export const EXPECTED: Readonly<Record<Operation, string>> = {
  update_status: 'true or false',
  add_release_condition: 'an object with a list `groups` of at least one condition set',
  update_variants: 'an object with a list `variants`, and `payloads` if there are any',
};
