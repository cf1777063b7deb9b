// Whatever stands in the table is compiled and evaluated: nothing throws, nothing hangs, and only the flag concerned is off.
import { describe, expect, test } from '@jest/globals';
import { compileFlag } from '../../../flags/engine/compile.ts';
import type { FlagDefinition } from '../../../flags/engine/definition.ts';
import { Evaluation } from '../../../flags/engine/evaluate.ts';
import { flagSet } from '../../../flags/engine/flag-set.ts';
import type { Subject } from '../../../flags/engine/subject.ts';
import { checkFilters } from '../../../flags/validation/filters.ts';
import { Cohorts } from '../../../properties/index.ts';
import { parseExactJson } from '../../../values/exact-json.ts';
import { rounds } from '../../support/rounds.ts';
import {
  dice,
  type RandomUser,
  type Roll,
  randomCohorts,
  randomFlags,
  randomUser,
} from '../agreement/random.ts';

const nested = (depth: number): unknown => {
  let value: unknown = [];
  for (let level = 0; level < depth; level += 1)
    value = level % 2 === 0 ? [value] : { values: [value], type: 'OR' };
  return value;
};
const STRANGE: readonly unknown[] = [
  ...[
    null,
    true,
    false,
    0,
    -1,
    1.5,
    1e308,
    2 ** 53,
    '',
    '0',
    '100',
    'true',
    'x'.repeat(5_000),
    '\0',
    '\ud800',
  ],
  ...[[], {}, [[]], [null], { constructor: 1 }, '__proto__', 'constructor', nested(150), nested(20)],
  ...[
    '(',
    '(?=a)',
    '(a+)+$',
    '\\1',
    '[',
    'a{1000}{1000}',
    '-99999d',
    '9999-99-99',
    '1.2.3.4.5',
    '>=1',
    'in',
    'not_in',
  ],
  ...[
    'flag_evaluates_to',
    'between',
    'is_cleaned_path_exact',
    'regex',
    'person',
    'group',
    'cohort',
    'flag',
    'event',
  ],
  { groups: [{ properties: [{ key: 'a', type: 'person', value: 1 }] }] },
];

/** A document with strange things at some places. */
function mutated(value: unknown, roll: Roll): unknown {
  if (roll(14) === 0) return STRANGE[roll(STRANGE.length)];
  if (Array.isArray(value)) {
    const list = value.map((one) => mutated(one, roll));
    return roll(12) === 0 ? [...list, ...list] : list;
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, one]): [string, unknown][] =>
    roll(25) === 0 ? [] : [[name, mutated(one, roll)]],
  );
  return Object.fromEntries(entries);
}

const definition = (
  id: number,
  filters: unknown,
  bucketing: FlagDefinition['bucketing'],
): FlagDefinition => ({
  ...{ id, key: `flag-${id}`, version: 1, filters, ensureExperienceContinuity: id % 7 === 0, runtime: 'all' },
  ...{ bucketing, contexts: [], isRemoteConfiguration: false, hasEncryptedPayloads: false },
  ...{ isActive: true, overrides: new Map() },
});

function subjectOf({ distinctId, deviceId, personProperties, groups, groupProperties }: RandomUser): Subject {
  const types = ['company', 'team'];
  return {
    ...{ distinctId, deviceId },
    property: (key) => (Object.hasOwn(personProperties, key) ? personProperties[key] : undefined),
    group: (index) => groups[types[index] ?? ''],
    groupProperty: (index, key) => groupProperties[types[index] ?? '']?.[key],
    inStatic: () => false,
    hashKey: () => undefined,
  };
}

test('random definitions with strange things at random places', () => {
  const roll = dice(99);
  let accepted = 0;
  for (let round = 0; round < rounds(150, 3_000); round += 1) {
    const cohorts = randomCohorts(roll, 5).map(({ id, properties }) => ({
      ...{ id, isStatic: roll(9) === 0 },
      filters: mutated({ properties: mutated(properties, roll) }, roll),
    }));
    const drafts = randomFlags(roll, 8, randomCohorts(roll, 5));
    const texts = drafts.map(({ filters }) => JSON.stringify(mutated(filters, roll)) ?? 'null');
    for (const text of texts) {
      try {
        checkFilters(parseExactJson(text), { isNew: true, isRemoteConfiguration: false });
        accepted += 1;
      } catch (error) {
        // A sentence that says what is wrong, and no fault of the program.
        expect([(error as Error).name, text]).toEqual(['Refusal', text]);
      }
    }
    const definitions = texts.map((text, index) =>
      definition(index + 1, parseExactJson(text), drafts[index]?.bucketing ?? 'distinct_id'),
    );
    const set = flagSet(definitions.map(compileFlag), {
      ...{ cohorts: new Cohorts(cohorts), timezone: 'Europe/Berlin' },
      groupTypes: new Map([['company', 0]]),
    });
    for (let number = 0; number < 3; number += 1) {
      const evaluation = new Evaluation(set, subjectOf(randomUser(roll, number)), Date.UTC(2026, 0, 1));
      for (const flag of set.flags) {
        const { code, detail } = evaluation.of(flag);
        expect([code === 'internal_error', texts[flag.definition.id - 1]]).toEqual([
          false,
          texts[flag.definition.id - 1],
        ]);
        JSON.parse(`{${detail}}`);
      }
    }
  }
  expect(accepted).toBeGreaterThan(100);
});

describe('what is refused when it is saved', () => {
  const check = (filter: object) => () =>
    checkFilters(
      { groups: [{ properties: [{ key: 'email', type: 'person', ...filter }], rollout_percentage: 100 }] },
      { isNew: true, isRemoteConfiguration: false },
    );
  test.each(['(', '[', '(?=a)', '(?<=a)b', '\\1', 'a{1001}', '(?P<x'])('the pattern %s', (value) => {
    expect(check({ operator: 'regex', value })).toThrow(
      'groups[0].properties[0].value: invalid regex pattern',
    );
    expect(check({ operator: 'not_regex', value })).toThrow(
      'groups[0].properties[0].value: invalid regex pattern',
    );
  });
  test.each(['is_cleaned_path_exact', 'between', 'not_between'])('the operator %s', (operator) => {
    expect(check({ operator, value: ['1', '2'] })).toThrow(
      `Unsupported operator for feature flags: ${operator}`,
    );
  });
});

test('10,000 conditions, and cohorts that name each other 1,000 deep', () => {
  const groups = Array.from({ length: 10_000 }, (_, index) => ({
    properties: [{ key: 'number', type: 'person', operator: 'exact', value: String(index) }],
    rollout_percentage: 100,
  }));
  const chain = Array.from({ length: 1_000 }, (_, index) => ({
    ...{ id: index + 1, isStatic: false },
    filters: {
      properties: {
        type: 'AND',
        values: [
          index === 0
            ? { key: 'number', type: 'person', operator: 'is_set', value: 'is_set' }
            : { key: 'id', type: 'cohort', value: index, negation: true },
        ],
      },
    },
  }));
  const last = { key: 'id', type: 'cohort', value: 1_000, operator: 'in' };
  const set = flagSet(
    [
      compileFlag(definition(1, { groups }, 'distinct_id')),
      compileFlag(definition(2, { groups: [{ properties: [last] }] }, 'distinct_id')),
    ],
    { cohorts: new Cohorts(chain), groupTypes: new Map(), timezone: 'UTC' },
  );
  const user = { ...randomUser(dice(1), 1), personProperties: { number: 9_999 } };
  const evaluation = new Evaluation(set, subjectOf(user), 0);
  const [many, deep] = set.flags.map((flag) => evaluation.of(flag));
  expect([many?.enabled, many?.conditionIndex]).toEqual([true, 9_999]);
  // 999 negations, one after the other.
  expect([deep?.failed, deep?.enabled]).toEqual([false, false]);
});
