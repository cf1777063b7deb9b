import type { CompiledFlag } from './engine/compile.ts';
import type { ConditionTest } from './engine/conditions.ts';
import type { Evaluation } from './engine/evaluate.ts';
import type { FlagSet } from './engine/flag-set.ts';
import { placeOf } from './engine/hash.ts';
import type { Subject } from './engine/subject.ts';
import { UnknownValueError } from './engine/subject.ts';
import type { Evaluator, FlagRequest } from './evaluator.ts';

/** What became of one filter. */
export interface ExplainedFilter {
  /** The filter as it is stored. */
  filter: unknown;
  passed: boolean;
  /** What was compared: the property, the membership, or the value of the other flag. Null: there is none. */
  found: unknown;
}

export interface ExplainedCondition {
  index: number;
  /** Null: the condition was skipped, because the request names no group of its type, or it was not reached. */
  passed: boolean | null;
  filters: ExplainedFilter[];
  rollout_percentage: number | null;
  /** The id that is counted, and where it lies between 0 and 100. It is in the rollout up to the percentage. */
  counted_id: string | null;
  counted_at: number | null;
}

export interface Explanation {
  key: string;
  value: boolean | string;
  failed: boolean;
  reason: { code: string; condition_index: number | null; description: string };
  payload: string | null;
  conditions: ExplainedCondition[];
}

/** What an evaluation was made of. */
interface Evaluated {
  set: FlagSet;
  subject: Subject;
  evaluation: Evaluation;
}

/** Remembers what became of the filters of one flag. */
export class Seen {
  readonly #flagId: number;
  readonly tests = new Map<number, { test: ConditionTest; passed: boolean }[]>();

  constructor(flagId: number) {
    this.#flagId = flagId;
  }

  readonly watch = (flag: CompiledFlag, index: number, test: ConditionTest, passed: boolean): void => {
    if (flag.definition.id !== this.#flagId) return;
    const before = this.tests.get(index);
    if (before) before.push({ test, passed });
    else this.tests.set(index, [{ test, passed }]);
  };
}

function found({ subject, evaluation, set }: Evaluated, test: ConditionTest, group: number | null): unknown {
  try {
    switch (test.kind) {
      case 'person':
        return subject.property(test.key) ?? null;
      case 'group': {
        const index = test.index ?? group;
        return index === null ? null : (subject.groupProperty(index, test.key) ?? null);
      }
      case 'flag': {
        const asked = set.byId.get(test.id);
        if (!asked) return null;
        const outcome = evaluation.of(asked);
        return outcome.enabled ? (outcome.variant ?? true) : false;
      }
      default:
        return null;
    }
  } catch (error) {
    if (error instanceof UnknownValueError) return null;
    throw error;
  }
}

/** Explains the value of a flag for somebody: each condition up to the one that decided, filter by filter. */
export async function explain(
  evaluator: Evaluator,
  projectId: number,
  flagId: number,
  request: FlagRequest,
): Promise<Explanation | undefined> {
  const seen = new Seen(flagId);
  const evaluated = await evaluator.evaluate(projectId, request, seen.watch);
  const flag = evaluated?.project.set.byId.get(flagId);
  if (!evaluated || !flag) return undefined;
  const { evaluation, subject, project } = evaluated;
  return explanationOf({ set: project.set, subject, evaluation }, flag, seen);
}

/** Explains what an evaluation, which `seen` watched, found out about a flag. */
export function explanationOf(evaluated: Evaluated, flag: CompiledFlag, seen: Seen): Explanation {
  const { evaluation } = evaluated;
  const outcome = evaluation.of(flag);
  const { definition } = flag;
  return {
    key: definition.key,
    value: outcome.enabled ? (outcome.variant ?? true) : false,
    failed: outcome.failed,
    reason: {
      code: outcome.code,
      condition_index: outcome.conditionIndex,
      description: outcome.description,
    },
    payload: outcome.payload,
    conditions: flag.conditions.map((condition, index) => {
      const tests = seen.tests.get(index);
      const isReached = tests !== undefined || (condition.tests.length === 0 && isBefore(index, outcome));
      const id = isReached ? evaluation.idFor(flag, condition) : undefined;
      return {
        index,
        passed: isReached ? (tests ?? []).every((one) => one.passed) : null,
        filters: (tests ?? []).map(({ test, passed }) => ({
          filter: test.filter,
          passed,
          found: found(evaluated, test, condition.group),
        })),
        rollout_percentage: condition.rollout,
        counted_id: id ?? null,
        counted_at: id === undefined ? null : placeOf(`${definition.key}.${id}`) * 100,
      };
    }),
  };
}

/** Whether a condition was looked at: all up to the one that matched, or all if none did. */
const isBefore = (index: number, { code, conditionIndex }: { code: string; conditionIndex: number | null }) =>
  code !== 'condition_match' || conditionIndex === null || index <= conditionIndex;
