import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { compileFlag } from '../../../flags/engine/compile.ts';
import type { FlagDefinition } from '../../../flags/engine/definition.ts';
import { Evaluation } from '../../../flags/engine/evaluate.ts';
import { flagSet } from '../../../flags/engine/flag-set.ts';
import { type Subject, UnknownValueError } from '../../../flags/engine/subject.ts';
import { Cohorts } from '../../../properties/index.ts';

interface Case {
  name: string;
  bucketing?: FlagDefinition['bucketing'];
  flag: unknown;
  subjects: {
    id: string;
    device?: string;
    group?: string;
    properties?: Record<string, unknown>;
    value: boolean | string;
    code: string;
    index: number | null;
    payload?: string;
  }[];
}

const CASES: Case[] = JSON.parse(readFileSync(path.join(import.meta.dirname, 'cases.json'), 'utf8'));

const definition = (filters: unknown, others: Partial<FlagDefinition> = {}): FlagDefinition => ({
  ...{ id: 1, key: 'new-checkout', version: 1, filters, ensureExperienceContinuity: false, runtime: 'all' },
  ...{ bucketing: 'distinct_id', contexts: [], isRemoteConfiguration: false, hasEncryptedPayloads: false },
  ...{ isActive: true, overrides: new Map() },
  ...others,
});
const setOf = (...definitions: FlagDefinition[]) =>
  flagSet(definitions.map(compileFlag), { cohorts: new Cohorts([]), groupTypes: new Map(), timezone: 'UTC' });

function subject(others: Partial<Subject> = {}): Subject {
  return {
    ...{ distinctId: 'user-1', deviceId: '', property: () => undefined, group: () => undefined },
    ...{ groupProperty: () => undefined, inStatic: () => false, hashKey: () => undefined },
    ...others,
  };
}

describe.each(CASES)('$name', ({ flag, bucketing, subjects }) => {
  test.each(subjects)(
    '$id is $value',
    ({ id, device = '', group, properties = {}, value, code, index, payload }) => {
      const set = setOf(definition(flag, bucketing ? { bucketing } : {}));
      const one = subject({
        ...{ distinctId: id, deviceId: device, group: (type) => (type === 0 ? group : undefined) },
        property: (key) => properties[key],
      });
      const [compiled] = set.flags;
      const outcome = new Evaluation(set, one, 0).of(compiled as NonNullable<typeof compiled>);
      const told = outcome.enabled ? (outcome.variant ?? true) : false;
      expect([told, outcome.code, outcome.conditionIndex]).toEqual([value, code, index]);
      if (payload !== undefined) expect(outcome.payload).toBe(payload);
    },
  );
});

test('what is not known fails only the flags that ask for it', () => {
  const ask = { key: 'a', type: 'person', operator: 'is_set' };
  const set = setOf(
    definition({ groups: [{ properties: [ask] }] }, { id: 1, key: 'asking' }),
    definition({ groups: [{ properties: [] }] }, { id: 2, key: 'plain' }),
    definition(
      { groups: [{ properties: [{ type: 'flag', key: '1', operator: 'flag_evaluates_to', value: true }] }] },
      { id: 3, key: 'depending' },
    ),
  );
  const one = subject({
    property() {
      throw new UnknownValueError('database_error');
    },
  });
  const evaluation = new Evaluation(set, one, 0);
  const outcomes = set.flags.map((flag) => [flag.definition.key, evaluation.of(flag).failed]);
  expect(Object.fromEntries(outcomes)).toEqual({ asking: true, plain: false, depending: true });
});

test('a chain of thousands of flags is computed', () => {
  const chain = Array.from({ length: 3_000 }, (_, index) => {
    const asked = { type: 'flag', key: String(index), operator: 'flag_evaluates_to', value: true };
    const properties = index === 0 ? [] : [asked];
    return definition({ groups: [{ properties }] }, { id: index + 1, key: `f${index + 1}` });
  });
  const set = setOf(...chain.reverse());
  const evaluation = new Evaluation(set, subject(), 0);
  expect(set.flags.every((flag) => evaluation.of(flag).enabled)).toBe(true);
});
