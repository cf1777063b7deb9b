import { operatorOf, type PropertyFilter, prepareTest, type Test } from '../../properties/index.ts';
import { ExactNumber } from '../../values/exact-json.ts';
import { isObject } from '../../values/json-object.ts';
import { own } from './definition.ts';
import { inOneGo, type Steps } from './steps.ts';

/** One filter of a condition, prepared; `filter` is the stored one. */
export type ConditionTest =
  | { kind: 'person'; key: string; test: Test; filter: unknown }
  | { kind: 'group'; index: number | null; key: string; test: Test; filter: unknown }
  | { kind: 'cohort'; id: number; wanted: boolean; filter: unknown }
  | { kind: 'flag'; id: number; value: boolean | string | null; filter: unknown }
  | { kind: 'never'; filter: unknown };

/** A condition set of a flag: all tests, then the rollout. */
export interface Condition {
  /** The type of the groups that it is about. Null: it is about persons. */
  group: number | null;
  tests: readonly ConditionTest[];
  /** Null: everybody who passes the tests. */
  rollout: number | null;
  /** The variant of everybody who matches. Null: by hash. */
  variant: string | null;
}

/** Whether everybody who passes the tests is in the rollout. */
export const isFull = ({ rollout }: Pick<Condition, 'rollout'>): boolean =>
  rollout === null || rollout >= 100;

const never = (filter: unknown): ConditionTest => ({ kind: 'never', filter });
const isScalar = (value: unknown): boolean =>
  ['string', 'number', 'boolean'].includes(typeof value) || value instanceof ExactNumber;

/** Numbers of JSON, and numbers that are written as texts. */
export function numberIn(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (value instanceof ExactNumber) return value.valueOf();
  if (typeof value === 'string' && /^\d{1,15}(?:\.\d+)?$/.test(value)) return Number(value);
  return null;
}

const indexIn = (value: unknown): number | null => {
  const number = numberIn(value);
  return number !== null && Number.isInteger(number) && number >= 0 ? number : null;
};

/** Cohorts are tested last, because they cost most. */
const costOf = (test: ConditionTest): number => (test.kind === 'never' ? 0 : test.kind === 'cohort' ? 2 : 1);

/** Prepares a filter. What cannot be read matches nobody; the API refuses to store it. */
function prepare(document: unknown): ConditionTest {
  if (!isObject(document)) return never(document);
  const key = own(document, 'key');
  const type = own(document, 'type') ?? 'person';
  const value = own(document, 'value') ?? null;
  const operator = operatorOf(own(document, 'operator'));
  if (type === 'cohort') return cohortTest(document, value);
  if (operator === null || (typeof key !== 'string' && typeof key !== 'number')) return never(document);
  if (type === 'flag') {
    const id = indexIn(String(key));
    if (id === null || operator !== 'flag_evaluates_to') return never(document);
    return {
      kind: 'flag',
      id,
      value: typeof value === 'string' || typeof value === 'boolean' ? value : null,
      filter: document,
    };
  }
  if (type !== 'person' && type !== 'group') return never(document);
  if (operator === 'flag_evaluates_to' || operator === 'in' || operator === 'not_in') return never(document);
  if (value !== null && !isScalar(value) && !(Array.isArray(value) && value.every(isScalar)))
    return never(document);
  const filter: PropertyFilter = {
    kind: 'property',
    type,
    key: String(key),
    operator,
    value: value as PropertyFilter['value'],
    groupTypeIndex: null,
    negation: false,
    path: '',
  };
  const test = prepareTest(filter, 'flag');
  if (type === 'person') return { kind: 'person', key: filter.key, test, filter: document };
  const index = indexIn(own(document, 'group_type_index'));
  return { kind: 'group', index, key: filter.key, test, filter: document };
}

function cohortTest(document: Record<string, unknown>, value: unknown): ConditionTest {
  const id = indexIn(value);
  const operator = own(document, 'operator') ?? 'in';
  if (id === null || (operator !== 'in' && operator !== 'not_in')) return never(document);
  return { kind: 'cohort', id, wanted: operator === 'in', filter: document };
}

/** Prepares the condition sets of a flag, filter by filter. */
export function* preparingConditions(
  groups: unknown,
  flagGroup: number | null,
  variants: ReadonlySet<string>,
): Steps<Condition[]> {
  if (!Array.isArray(groups)) return [];
  const conditions: Condition[] = [];
  for (const document of groups.filter(isObject)) {
    const properties = own(document, 'properties');
    const tests: ConditionTest[] = [];
    for (const property of Array.isArray(properties) ? properties : []) {
      tests.push(prepare(property));
      yield;
    }
    const variant = own(document, 'variant');
    const group = own(document, 'aggregation_group_type_index');
    conditions.push({
      group: group === undefined ? flagGroup : indexIn(group),
      tests: tests.sort((left, right) => costOf(left) - costOf(right)),
      rollout: numberIn(own(document, 'rollout_percentage')),
      variant: typeof variant === 'string' && variants.has(variant) ? variant : null,
    });
    yield;
  }
  return conditions;
}

export const prepareConditions = (...given: Parameters<typeof preparingConditions>): Condition[] =>
  inOneGo(preparingConditions(...given));
