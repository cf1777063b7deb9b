// Finds out for stored persons what a draft of a flag would be for them, and what the flag is now. It runs in a thread.
import { Cohorts } from '../../properties/index.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { type CompiledFlag, compileFlag } from '../engine/compile.ts';
import type { FlagDefinition } from '../engine/definition.ts';
import { Evaluation } from '../engine/evaluate.ts';
import { type FlagSet, flagSet } from '../engine/flag-set.ts';
import { storedSubject } from '../stored-subject.ts';

/** A flag, with its filters as text. */
export interface TrialFlag extends Omit<FlagDefinition, 'filters' | 'overrides'> {
  filters: string;
  overrides: [distinctId: string, value: boolean | string][];
}

export interface TrialPerson {
  id: string;
  distinctIds: string[];
  /** JSON. */
  properties: string;
  staticCohorts: number[];
  hashKeys: Record<string, string>;
}

export interface TrialJob {
  proposed: TrialFlag;
  /** Null: there is nothing to compare with. */
  running: TrialFlag | null;
  /** The flags that one of them asks about, directly or through others. */
  asked: TrialFlag[];
  cohorts: { id: number; isStatic: boolean; filters: string }[];
  timezone: string;
  now: number;
  persons: TrialPerson[];
  /** How many of each kind are shown. */
  sample: number;
}

/** What a flag is for somebody, and why. */
export interface TrialValue {
  value: boolean | string;
  failed: boolean;
  reason: string;
  condition_index: number | null;
}

export interface TrialExample {
  distinct_id: string;
  person_id: string;
  proposed: TrialValue;
  running: TrialValue | null;
}

/** All distinct ids for which the running flag and the draft have the same two values. */
export interface TrialGroup {
  proposed: Pick<TrialValue, 'value' | 'failed'>;
  running: Pick<TrialValue, 'value' | 'failed'> | null;
  count: number;
  /** The persons whom these ids belong to. */
  persons: number;
  examples: TrialExample[];
}

const compiled = ({ filters, overrides, ...flag }: TrialFlag): CompiledFlag =>
  compileFlag({ ...flag, filters: parseExactJson(filters), overrides: new Map(overrides) });

interface Version {
  flag: CompiledFlag;
  set: FlagSet;
}

function valueIn({ flag, set }: Version, evaluation: Evaluation): TrialValue {
  if (!flag.definition.isActive) {
    return { value: false, failed: false, reason: 'disabled', condition_index: null };
  }
  // A flag on a circle is told to nobody.
  if (set.circular.includes(flag)) {
    return { value: false, failed: true, reason: 'dependency_cycle', condition_index: null };
  }
  const { enabled, variant, failed, code, conditionIndex } = evaluation.of(flag);
  return {
    value: enabled ? (variant ?? true) : false,
    failed,
    reason: code,
    condition_index: conditionIndex,
  };
}

const nameOf = (one: TrialValue | null) => JSON.stringify(one && [one.value, one.failed]);
const short = ({ value, failed }: TrialValue) => ({ value, failed });

/** Evaluates both versions for each distinct id, since it is distinct ids that are hashed. */
export function runTrial(job: TrialJob): TrialGroup[] {
  const cohorts = new Cohorts(job.cohorts.map((one) => ({ ...one, filters: parseExactJson(one.filters) })));
  const asked = job.asked.map(compiled);
  const version = (flag: CompiledFlag): Version => ({
    flag,
    set: flagSet([...asked, flag], { cohorts, groupTypes: new Map(), timezone: job.timezone }),
  });
  const proposed = version(compiled(job.proposed));
  const running = job.running && version(compiled(job.running));
  const groups = new Map<string, TrialGroup>();
  for (const person of job.persons) {
    const properties = parseExactJson(person.properties) as Record<string, unknown>;
    const staticCohorts = new Set(person.staticCohorts);
    const hashKeys = new Map(Object.entries(person.hashKeys));
    const seen = new Set<TrialGroup>();
    for (const distinctId of person.distinctIds) {
      const subject = storedSubject({ distinctId, properties, staticCohorts, hashKeys });
      const tell = (one: Version) => valueIn(one, new Evaluation(one.set, subject, job.now));
      const after = tell(proposed);
      const before = running && tell(running);
      const name = `${nameOf(before)} ${nameOf(after)}`;
      let group = groups.get(name);
      if (!group) {
        group = {
          ...{ proposed: short(after), running: before && short(before) },
          ...{ count: 0, persons: 0, examples: [] },
        };
        groups.set(name, group);
      }
      group.count += 1;
      if (!seen.has(group)) group.persons += 1;
      seen.add(group);
      if (group.examples.length < job.sample) {
        group.examples.push({
          distinct_id: distinctId,
          person_id: person.id,
          proposed: after,
          running: before,
        });
      }
    }
  }
  return [...groups.values()];
}
