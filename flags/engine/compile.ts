import { isObject } from '../../values/json-object.ts';
import { type Condition, isFull, numberIn, prepareConditions, preparingConditions } from './conditions.ts';
import { type FlagDefinition, own } from './definition.ts';
import { type Outcome, Outcomes } from './outcome.ts';
import { inOneGo, type Steps } from './steps.ts';

/** A flag that is ready to be evaluated. */
export interface CompiledFlag {
  definition: FlagDefinition;
  conditions: readonly Condition[];
  /** The variants, each with the end of its share of the hash. */
  variants: readonly { key: string; end: number }[];
  /** The type of the groups that the flag as a whole is about. Null: it is about persons. */
  group: number | null;
  /** The property by which a person takes part in early access. Null: the flag has none. */
  enrollment: string | null;
  /** An older form of early access: a condition that decides for everybody who has one of these properties. */
  legacyEnrollment: { keys: readonly string[]; condition: Condition } | null;
  holdout: { variant: string; share: number } | null;
  /** A condition that matches outside its rollout ends the evaluation. */
  earlyExit: boolean;
  /** The flags that this one asks about. */
  asks: readonly number[];
  /** The properties of the person that it may ask for, cohorts apart. */
  properties: readonly string[];
  cohorts: readonly number[];
  /** The properties of groups that it may ask for. */
  groupProperties: readonly string[];
  outcomes: Outcomes;
  /** What the flag is for everybody. Null: it depends on who asks. */
  constant: Outcome | null;
  /** The flag as nothing but a draw: it has a single condition, which is without tests. */
  draw: Draw | null;
}

/** A flag that only asks where somebody lies in its rollout, and among its variants. */
export interface Draw {
  /** Null: everybody is in the rollout. */
  share: number | null;
  /** Null: the variant is drawn. */
  inside: Outcome | null;
  outside: Outcome;
}

function variantsOf(filters: Record<string, unknown>): CompiledFlag['variants'] {
  const multivariate = own(filters, 'multivariate');
  const list = isObject(multivariate) ? own(multivariate, 'variants') : undefined;
  if (!Array.isArray(list)) return [];
  let end = 0;
  return list.filter(isObject).flatMap((one) => {
    const key = own(one, 'key');
    if (typeof key !== 'string') return [];
    end += (numberIn(own(one, 'rollout_percentage')) ?? 0) / 100;
    return [{ key, end }];
  });
}

/** The holdout of a flag, in the form of today or in the older one. */
function holdoutOf(filters: Record<string, unknown>): CompiledFlag['holdout'] {
  const holdout = own(filters, 'holdout');
  if (isObject(holdout)) {
    const id = numberIn(own(holdout, 'id'));
    const share = numberIn(own(holdout, 'exclusion_percentage'));
    return id === null || share === null ? null : { variant: `holdout-${id}`, share: bounded(share) };
  }
  const older = own(filters, 'holdout_groups');
  const first = Array.isArray(older) ? older.find(isObject) : undefined;
  const variant = first && own(first, 'variant');
  if (!first || typeof variant !== 'string') return null;
  return { variant, share: bounded(numberIn(own(first, 'rollout_percentage')) ?? 100) };
}

const bounded = (percentage: number): number => Math.min(100, Math.max(0, percentage)) / 100;

function legacyEnrollmentOf(filters: Record<string, unknown>): CompiledFlag['legacyEnrollment'] {
  const groups = own(filters, 'super_groups');
  const [condition] = prepareConditions(Array.isArray(groups) ? groups.slice(0, 1) : [], null, new Set());
  if (!condition) return null;
  return { keys: condition.tests.flatMap((test) => (test.kind === 'person' ? [test.key] : [])), condition };
}

/** The texts of the payloads, by variant; `true` names that of a flag without variants. */
function payloadsOf(filters: Record<string, unknown>): Map<string, string> {
  const payloads = own(filters, 'payloads');
  if (!isObject(payloads)) return new Map();
  return new Map(
    Object.entries(payloads).flatMap(([key, value]) =>
      value === null || value === undefined
        ? []
        : [[key, typeof value === 'string' ? value : JSON.stringify(value)] as const],
    ),
  );
}

/** Prepares a flag in steps. Whatever is stored can be prepared; what cannot be read matches nobody. */
export function* compilingFlag(definition: FlagDefinition): Steps<CompiledFlag> {
  const filters = isObject(definition.filters) ? definition.filters : {};
  const group = numberIn(own(filters, 'aggregation_group_type_index'));
  const variants = variantsOf(filters);
  const conditions = yield* preparingConditions(
    own(filters, 'groups'),
    group,
    new Set(variants.map((one) => one.key)),
  );
  const legacyEnrollment = legacyEnrollmentOf(filters);
  const enrollment =
    own(filters, 'feature_enrollment') === true ? `$feature_enrollment/${definition.key}` : null;
  const all = [...conditions, ...(legacyEnrollment ? [legacyEnrollment.condition] : [])];
  const tests = all.flatMap((one) => one.tests);
  const holdout = holdoutOf(filters);
  const outcomes = new Outcomes(definition, payloadsOf(filters));
  const asks = [...new Set(tests.flatMap((test) => (test.kind === 'flag' ? [test.id] : [])))];
  const isPlain =
    definition.overrides.size === 0 &&
    definition.bucketing === 'distinct_id' &&
    !definition.ensureExperienceContinuity &&
    enrollment === null &&
    legacyEnrollment === null &&
    holdout === null;
  return {
    definition,
    conditions,
    variants,
    group,
    enrollment,
    legacyEnrollment,
    holdout,
    earlyExit: own(filters, 'early_exit') === true,
    asks,
    properties: [
      ...new Set([
        ...tests.flatMap((test) => (test.kind === 'person' ? [test.key] : [])),
        ...(enrollment === null ? [] : [enrollment]),
      ]),
    ],
    cohorts: [...new Set(tests.flatMap((test) => (test.kind === 'cohort' ? [test.id] : [])))],
    groupProperties: [...new Set(tests.flatMap((test) => (test.kind === 'group' ? [test.key] : [])))],
    outcomes,
    ...(isPlain && asks.length === 0
      ? simplified(conditions, variants, outcomes)
      : { constant: null, draw: null }),
  };
}

/** Prepares a flag in one go. */
export const compileFlag = (definition: FlagDefinition): CompiledFlag => inOneGo(compilingFlag(definition));

/** Finds out whether a flag is the same for everybody, or depends on draws alone. */
function simplified(
  conditions: readonly Condition[],
  variants: CompiledFlag['variants'],
  outcomes: Outcomes,
): Pick<CompiledFlag, 'constant' | 'draw'> {
  const [first] = conditions;
  const isForAll = first !== undefined && first.group === null && first.tests.length === 0;
  if (!isForAll) return { constant: null, draw: null };
  const isDrawn = variants.length > 0 && first.variant === null;
  const inside = isDrawn ? null : outcomes.matched(0, first.variant);
  if (isFull(first) && inside) return { constant: inside, draw: null };
  if (conditions.length > 1 && !isFull(first)) return { constant: null, draw: null };
  const share = isFull(first) ? null : (first.rollout as number) / 100;
  return { constant: null, draw: { share, inside, outside: outcomes.unmatched('out_of_rollout_bound', 0) } };
}
