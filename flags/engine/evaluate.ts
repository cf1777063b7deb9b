import { passes } from '../../properties/index.ts';
import type { Moment } from '../../values/dates.ts';
import type { CompiledFlag, Draw } from './compile.ts';
import { type Condition, type ConditionTest, isFull } from './conditions.ts';
import type { FlagSet } from './flag-set.ts';
import { placeOf } from './hash.ts';
import type { Outcome, Unmatched } from './outcome.ts';
import { type FailureCode, SCORES } from './reasons.ts';
import { type Subject, UnknownValueError } from './subject.ts';

/** Watches a test, for an explanation. */
export type Watch = (
  flag: CompiledFlag,
  conditionIndex: number,
  test: ConditionTest,
  passed: boolean,
) => void;

/** Evaluates flags for one subject. What two flags ask about a third is computed once. */
export class Evaluation {
  readonly #set: FlagSet;
  readonly #subject: Subject;
  readonly #moment: Moment;
  readonly #isAsked: (flag: CompiledFlag) => boolean;
  readonly #watch: Watch | undefined;
  #outcomes: Map<CompiledFlag, Outcome> | undefined;

  /** `isAsked`: whether a flag exists for this request. Others count as off for those that ask about them. */
  constructor(
    set: FlagSet,
    subject: Subject,
    now: number,
    isAsked: (flag: CompiledFlag) => boolean = () => true,
    watch?: Watch,
  ) {
    this.#set = set;
    this.#subject = subject;
    this.#moment = { now, timezone: set.timezone };
    this.#isAsked = isAsked;
    this.#watch = watch;
  }

  /** What a flag is for the subject. Never throws: a flag that cannot be computed has failed. */
  of(flag: CompiledFlag): Outcome {
    if (flag.constant !== null) return flag.constant;
    if (flag.draw !== null) return this.#drawn(flag, flag.draw);
    // Only what several flags ask about is worth remembering.
    if (!this.#set.asked.has(flag.definition.id)) return this.#compute(flag);
    let outcome = this.#outcomes?.get(flag);
    if (!outcome) {
      outcome = this.#compute(flag);
      this.#outcomes ??= new Map();
      this.#outcomes.set(flag, outcome);
    }
    return outcome;
  }

  #drawn(flag: CompiledFlag, { share, inside, outside }: Draw): Outcome {
    const { distinctId } = this.#subject;
    // Nobody without an id is in a part of the people.
    const isInside =
      share === null || (distinctId !== '' && this.#set.draws.rollout(flag, distinctId) <= share);
    if (!isInside) return outside;
    return inside ?? this.#matched(flag, flag.conditions[0] as Condition, 0, distinctId);
  }

  #compute(flag: CompiledFlag): Outcome {
    try {
      return this.#decide(flag);
    } catch (error) {
      const code: FailureCode = error instanceof UnknownValueError ? error.code : 'internal_error';
      return flag.outcomes.failed(code);
    }
  }

  #decide(flag: CompiledFlag): Outcome {
    const { definition, outcomes } = flag;
    if (definition.overrides.size > 0) {
      const byHand = definition.overrides.get(this.#subject.distinctId);
      if (byHand !== undefined) {
        const variant = typeof byHand === 'string' ? byHand : null;
        return outcomes.of({ enabled: byHand !== false, variant, code: 'override' });
      }
    }
    for (const id of flag.asks) {
      if (!this.#set.byId.has(id)) return outcomes.of({ enabled: false, code: 'missing_dependency' });
    }
    return (
      (flag.enrollment !== null || flag.legacyEnrollment !== null ? this.#enrolled(flag) : undefined) ??
      (flag.holdout !== null ? this.#heldOut(flag) : undefined) ??
      this.#byConditions(flag)
    );
  }

  /** What early access decides: a person takes part or does not, whatever the conditions say. */
  #enrolled(flag: CompiledFlag): Outcome | undefined {
    const { enrollment, legacyEnrollment, outcomes } = flag;
    const decided = (enabled: boolean) =>
      outcomes.of({ enabled, code: 'super_condition_value', conditionIndex: 0, withPayload: true });
    if (enrollment !== null) {
      const value = this.#subject.property(enrollment);
      if (value !== undefined) return decided(value === true || value === 'true');
    }
    if (legacyEnrollment === null) return undefined;
    const { keys, condition } = legacyEnrollment;
    if (!keys.some((key) => this.#subject.property(key) !== undefined)) return undefined;
    return decided(
      this.#passes(flag, condition, 0) && this.#isRolledOut(flag, condition, this.#subject.distinctId),
    );
  }

  #heldOut({ holdout, group, definition, outcomes }: CompiledFlag): Outcome | undefined {
    if (holdout === null) return undefined;
    const { distinctId, deviceId } = this.#subject;
    const person = definition.bucketing === 'device_id' ? deviceId : distinctId;
    const id = group === null ? person : this.#subject.group(group);
    if (id === undefined || id === '') return undefined;
    const isHeld = holdout.share >= 1 || placeOf(`holdout-${id}`) <= holdout.share;
    if (!isHeld) return undefined;
    return outcomes.of({ enabled: true, variant: holdout.variant, code: 'holdout_condition_value' });
  }

  #byConditions(flag: CompiledFlag): Outcome {
    const { conditions, outcomes, definition } = flag;
    let code: Unmatched = 'no_group_type';
    let told: number | null = null;
    let skippedGroups = false;
    for (let index = 0; index < conditions.length; index += 1) {
      const condition = conditions[index] as Condition;
      let result: Unmatched;
      const group = condition.group === null ? undefined : this.#subject.group(condition.group);
      if (condition.group !== null && group === undefined) {
        result = 'no_group_type';
        skippedGroups = true;
      } else if (!this.#passes(flag, condition, index)) {
        result = 'no_condition_match';
      } else {
        const id = group ?? this.#personId(flag);
        const isDevice = condition.group === null && definition.bucketing === 'device_id';
        if (!(isDevice && id === '') && this.#isRolledOut(flag, condition, id)) {
          return this.#matched(flag, condition, index, id);
        }
        result = 'out_of_rollout_bound';
        if (flag.earlyExit) {
          return outcomes.unmatched(result, index);
        }
      }
      if (told === null || SCORES[result] >= SCORES[code]) {
        code = result;
        told = index;
      }
    }
    return skippedGroups && code === 'no_condition_match'
      ? outcomes.of({ enabled: false, code, conditionIndex: told, skippedGroups })
      : outcomes.unmatched(code, told);
  }

  #matched(flag: CompiledFlag, condition: Condition, index: number, id: string): Outcome {
    const { variants, outcomes } = flag;
    let { variant } = condition;
    if (variants.length > 0 && variant === null) {
      const place = this.#set.draws.variant(flag, id);
      for (const one of variants) {
        if (place >= one.end) continue;
        variant = one.key;
        break;
      }
    }
    return outcomes.matched(index, variant);
  }

  /** By which id the subject is counted to the rollout of a condition. Undefined: they have none. */
  idFor(flag: CompiledFlag, condition: Condition): string | undefined {
    return condition.group === null ? this.#personId(flag) : this.#subject.group(condition.group);
  }

  /** By what a person is counted to a rollout. */
  #personId({ definition }: CompiledFlag): string {
    if (definition.bucketing === 'device_id') return this.#subject.deviceId;
    const { distinctId } = this.#subject;
    return definition.ensureExperienceContinuity
      ? (this.#subject.hashKey(definition.key) ?? distinctId)
      : distinctId;
  }

  /** Nobody without an id is in a part of the people: they would all be the same person. */
  #isRolledOut(flag: CompiledFlag, condition: Condition, id: string): boolean {
    if (isFull(condition)) return true;
    return id !== '' && this.#set.draws.rollout(flag, id) <= (condition.rollout as number) / 100;
  }

  #passes(flag: CompiledFlag, condition: Condition, index: number): boolean {
    if (this.#watch) {
      let all = true;
      for (const test of condition.tests) {
        const passed = this.#test(test, condition);
        this.#watch(flag, index, test, passed);
        all &&= passed;
      }
      return all;
    }
    for (const test of condition.tests) if (!this.#test(test, condition)) return false;
    return true;
  }

  #test(test: ConditionTest, condition: Condition): boolean {
    switch (test.kind) {
      case 'person':
        return passes(test.test, this.#subject.property(test.key), this.#moment);
      case 'group': {
        const index = test.index ?? condition.group;
        const property = index === null ? undefined : this.#subject.groupProperty(index, test.key);
        return passes(test.test, property, this.#moment);
      }
      case 'cohort': {
        const member = this.#set.cohorts.decide(test.id, this.#subject, this.#moment);
        if (typeof member === 'string') throw new UnknownValueError(member);
        return member === test.wanted;
      }
      case 'flag':
        return this.#asks(test.id, test.value);
      case 'never':
        return false;
    }
  }

  #asks(id: number, value: boolean | string | null): boolean {
    const flag = this.#set.byId.get(id);
    let state: boolean | string = false;
    if (flag?.definition.isActive && this.#isAsked(flag)) {
      const outcome = this.of(flag);
      if (outcome.failed) throw new UnknownValueError(outcome.code as FailureCode);
      state = outcome.enabled ? (outcome.variant ?? true) : false;
    }
    return value === true ? state !== false : state === value;
  }
}
