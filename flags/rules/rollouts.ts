import { isDeepStrictEqual } from 'node:util';

export const ROLLOUT_STATUSES = ['running', 'paused', 'completed', 'cancelled', 'ended'] as const;
/** `ended`: it stopped by itself, because of something that people did to the flag. */
export type RolloutStatus = (typeof ROLLOUT_STATUSES)[number];

export const isActiveRollout = (status: RolloutStatus): boolean =>
  status === 'running' || status === 'paused';

export const ROLLOUT_LIMITS = { steps: 1_000, days: 366 } as const;

/** A rollout from one percentage to another. Times are in milliseconds. */
export interface RolloutPlan {
  from: number;
  to: number;
  steps: number;
  startsAt: number;
  endsAt: number;
}

/** When a step is taken. Step 0 sets the first percentage at the beginning, the last one the last at the end. */
export const timeOfStep = ({ startsAt, endsAt, steps }: RolloutPlan, step: number): number =>
  Math.ceil(startsAt + ((endsAt - startsAt) * step) / steps);

/** The last step that is due at a time. -1: none is. */
export function stepAt(plan: RolloutPlan, now: number): number {
  if (now < plan.startsAt) return -1;
  let step = Math.floor(((now - plan.startsAt) * plan.steps) / (plan.endsAt - plan.startsAt));
  // The division may be off by the last digit.
  while (step < plan.steps && timeOfStep(plan, step + 1) <= now) step += 1;
  while (step > 0 && timeOfStep(plan, step) > now) step -= 1;
  return Math.min(step, plan.steps);
}

/** The percentage of a step, with two decimals at most. The last one is the given one. */
export const percentageOf = ({ from, to, steps }: RolloutPlan, step: number): number =>
  step >= steps ? to : Math.round((from + ((to - from) * step) / steps) * 100) / 100;

type Condition = Record<string, unknown>;

/** What a condition set is beside its percentage. */
export function withoutPercentage({ rollout_percentage: _, ...rest }: Condition): Condition {
  return rest;
}

/** The percentage of a condition set. Without one it is for everybody that matches. */
export const percentageIn = ({ rollout_percentage: value }: Condition): number =>
  value === null || value === undefined ? 100 : Number(value);

/** Finds a condition set again where it was, or else where it was moved to. The rest of it must be the same. */
export function findCondition(
  groups: readonly Condition[],
  index: number,
  condition: Condition,
): number | undefined {
  const isIt = (one: Condition | undefined) =>
    one !== undefined && isDeepStrictEqual(withoutPercentage(one), condition);
  if (isIt(groups[index])) return index;
  const found = groups.findIndex(isIt);
  return found < 0 ? undefined : found;
}

export const ENDINGS = {
  deleted: 'The flag was deleted.',
  removed: 'Somebody changed or removed the condition set.',
  disabled: 'The flag is disabled. Resume the rollout when it is enabled again.',
  edited: (now: number, expected: number) =>
    `Somebody set the percentage to ${now}. The rollout had left it at ${expected}.`,
} as const;
