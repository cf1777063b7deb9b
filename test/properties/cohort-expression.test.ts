// Cohorts in filters that run in real time mean what they mean in flags.
import { describe, expect, test } from '@jest/globals';
import { exclusionOf } from '../../functions/dispatch/exclusion.ts';
import { matches, surroundingsIn } from '../../functions/evaluate.ts';
import { filterOf, isJavaScript, Moment } from '../../functions/filter.ts';
import { filterGlobalsOf } from '../../functions/rules/globals.ts';
import { staticCohortsOf } from '../../functions/static-cohorts.ts';
import { build } from '../../hog/ast/index.ts';
import { compileBytecode } from '../../hog/bytecode/index.ts';
import {
  type CohortDefinition,
  CohortInliner,
  Cohorts,
  INLINE_LIMITS,
  personProperty,
} from '../../properties/index.ts';
import { dice, randomCohorts, randomUser } from '../flags/agreement/random.ts';
import { rounds } from '../support/rounds.ts';

const NOW = Date.UTC(2026, 5, 15, 12);
const frame = { now: NOW, seed: 1 };

/** The code of a filter that asks for a cohort. */
const codeOf = (cohorts: Cohorts, id: number, timezone = 'UTC') =>
  compileBytecode(new CohortInliner(cohorts, new Map(), timezone).expression(id));

const globalsOf = (properties: Record<string, unknown> | null, distinctId = 'ada') =>
  filterGlobalsOf(
    {
      ...{ uuid: '', event: 'paid', distinct_id: distinctId, properties: {} },
      ...{ timestamp: '', elements_chain: '' },
    },
    properties && { id: '', properties },
    [],
  );

/** What flags say of a person. */
const memberOf = (properties: Record<string, unknown>, distinctId: string) => ({
  property: (key: string) =>
    key === 'distinct_id'
      ? distinctId
      : personProperty((name) => (Object.hasOwn(properties, name) ? properties[name] : undefined), key),
  inStatic: () => false,
});

describe('filters and flags agree', () => {
  test.each(['UTC', 'America/Los_Angeles'])(
    'about random persons and cohorts, in JavaScript and in the machine (%s)',
    (timezone) => {
      const roll = dice(timezone.length);
      const definitions: CohortDefinition[] = randomCohorts(roll, 40).map(({ id, properties }) => ({
        ...{ id, isStatic: false, filters: { properties } },
      }));
      const initial = { key: '$initial_utm_source', operator: 'is_not', value: ['ad', 'mail'] };
      definitions.push({
        id: 1,
        isStatic: false,
        filters: { properties: { type: 'AND', values: [initial] } },
      });
      const cohorts = new Cohorts(definitions);
      const moment = new Moment();
      moment.set(NOW, () => 1);
      const filters = definitions.map(({ id }) => {
        const code = codeOf(cohorts, id, timezone);
        expect(isJavaScript(code)).toBe(true);
        return { id, code, filter: filterOf(code, moment), members: 0 };
      });
      const persons = rounds(1_000, 10_000);
      const differences: string[] = [];
      for (let number = 0; number < persons; number++) {
        const user = randomUser(roll, number);
        const given = { ...user.personProperties, ...(number % 5 === 0 ? { utm_source: 'ad' } : {}) };
        const properties = JSON.parse(JSON.stringify(given)) as Record<string, unknown>;
        const member = memberOf(properties, user.distinctId);
        const globals = globalsOf(properties, user.distinctId);
        for (const one of filters) {
          const expected = cohorts.decide(one.id, member, { now: NOW, timezone });
          if (expected === true) one.members += 1;
          const seen = [one.filter(globals)];
          if (number % 50 === 0) seen.push(matches(one.code, globals, surroundingsIn(frame)));
          for (const { matched, error } of seen) {
            if (matched === expected && error === undefined) continue;
            differences.push(`${one.id} ${JSON.stringify(properties)}: ${matched} ${error ?? ''}`);
          }
        }
      }
      expect(differences.slice(0, 5)).toEqual([]);
      const some = filters.filter(({ members }) => members > 0 && members < persons);
      expect(some.length).toBeGreaterThan(filters.length / 3);
    },
  );

  test('about null and what is missing, and about events without a person', () => {
    const values = (...conditions: object[]) => ({ properties: { type: 'AND', values: conditions } });
    const conditions = [
      { key: 'plan', operator: 'is_set' },
      { key: 'plan', operator: 'is_not_set' },
      { key: 'plan', operator: 'exact', value: 'null' },
      { key: 'plan', operator: 'is_not', value: 'null' },
      { key: 'plan', operator: 'not_icontains', value: 'ul' },
      { key: 'plan', operator: 'is_set', negation: true },
    ];
    const cohorts = new Cohorts(conditions.map((one, id) => ({ id, isStatic: false, filters: values(one) })));
    for (const properties of [{}, { plan: null }, { plan: 'null' }, { plan: 'pro' }, null]) {
      for (const id of conditions.keys()) {
        const expected = cohorts.decide(id, memberOf(properties ?? {}, 'ada'), { now: NOW, timezone: 'UTC' });
        const seen = matches(codeOf(cohorts, id), globalsOf(properties), surroundingsIn(frame));
        expect([id, properties, seen]).toEqual([id, properties, { matched: expected }]);
      }
    }
  });
});

test('what is in front of a cohort still excludes events, and a cohort excludes none', () => {
  const filters = { properties: { type: 'OR', values: [{ key: 'plan', operator: 'exact', value: 'pro' }] } };
  const cohorts = new Cohorts([{ id: 1, isStatic: false, filters }]);
  const exclusion = exclusionOf(codeOf(cohorts, 1));
  expect(exclusion).toMatchObject({ ofPerson: [], ofEvent: [], mayFail: false });
  expect(exclusion.excludes({ event: 'a', distinct_id: 'b', properties: {} })).toBe(false);
});

describe('who is listed in a static cohort', () => {
  const values = [
    { type: 'cohort', key: 'id', value: 7 },
    { type: 'cohort', key: 'id', value: 8, operator: 'not_in' },
  ];
  const cohorts = new Cohorts([
    { id: 1, isStatic: false, filters: { properties: { type: 'AND', values } } },
    ...[7, 8].map((id) => ({ id, isStatic: true, filters: {} })),
  ]);
  const code = codeOf(cohorts, 1);
  const moment = new Moment();
  const globals = (listedIn?: number[], person: { id: string; properties: object } | null = ADA) =>
    filterGlobalsOf(
      { uuid: '', event: 'paid', distinct_id: '', properties: {}, timestamp: '', elements_chain: '' },
      person as never,
      [],
      listedIn,
    );
  const ADA = { id: '', properties: {} };

  test('is what whoever asks has looked up, in JavaScript and in the machine', () => {
    expect(isJavaScript(code)).toBe(true);
    expect(staticCohortsOf([{ own: null, mappings: [code] }])).toEqual([7, 8]);
    for (const [seen, matched] of [
      [globals([7]), true],
      [globals([7, 8]), false],
      [globals([8]), false],
      [globals([]), false],
      [globals([7], null), false],
      [globals(undefined, null), false],
    ] as const) {
      expect(filterOf(code, moment)(seen)).toEqual({ matched });
      expect(matches(code, seen, surroundingsIn(frame))).toEqual({ matched });
    }
  });

  test('is an error where nobody has, and not the answer that nobody is listed', () => {
    const error = 'inCohort() requires cohort membership to be loaded for this evaluation';
    expect(filterOf(code, moment)(globals())).toMatchObject({ matched: false, error });
    expect(matches(code, globals(), surroundingsIn(frame))).toEqual({ matched: false, error });
  });

  test('does not keep conditions behind it from excluding events', () => {
    const isPaid = build.compare('==', build.field('event'), build.constant('paid'));
    const inCohort = new CohortInliner(cohorts, new Map(), 'UTC').expression(1);
    const { excludes, mayFail } = exclusionOf(compileBytecode(build.and([inCohort, isPaid])));
    expect(mayFail).toBe(false);
    const glance = { event: 'seen', distinct_id: '', properties: {} };
    expect([excludes(glance), excludes({ ...glance, event: 'paid' })]).toEqual([true, false]);
  });
});

describe('what cannot be inlined is refused', () => {
  const condition = (value: unknown, more: object = {}) => ({ key: 'plan', value, ...more });
  const of = (id: number, ...values: object[]) => ({
    ...{ id, isStatic: false, filters: { properties: { type: 'AND', values } } },
  });
  const cohort = (value: number) => ({ type: 'cohort', key: 'id', value });
  const refusal = (definitions: CohortDefinition[], id = 1) => {
    try {
      new CohortInliner(new Cohorts(definitions), new Map([[1, 'Payers']]), 'UTC').expression(id);
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  };
  const chain = Array.from({ length: 30 }, (_, id) => of(id, cohort(id + 1)));
  test.each<[string, CohortDefinition[], string | RegExp]>([
    ['one that is not there', [], 'Cohort 1 ("Payers") does not exist in this project, or was deleted'],
    [
      'a nested one that is not there',
      [of(1, cohort(2))],
      'Cohort 1 ("Payers") names cohort 2, which does not exist in this project, or was deleted',
    ],
    ['a circle', [of(1, cohort(2)), of(2, cohort(1))], /leads to itself$/],
    [
      'what persons did',
      [of(1, condition('x', { type: 'behavioral' }))],
      /^In cohort 1 \("Payers"\), the condition on "plan" \(type "behavioral", operator "exact"\) cannot be tested in a function/,
    ],
    [
      'cleaned paths',
      [of(1, condition('/', { operator: 'is_cleaned_path_exact' }))],
      /operator "is_cleaned_path_exact"/,
    ],
    [
      'too many conditions',
      [of(1, ...Array.from({ length: INLINE_LIMITS.conditions + 1 }, () => condition('x')))],
      /too large/,
    ],
    ['too long values', [of(1, condition('x'.repeat(INLINE_LIMITS.characters)))], /too large/],
    ['too deep', chain, /is inside of more than 20 others$/],
  ])('%s', (_name, definitions, message) => {
    expect(refusal(definitions, definitions === chain ? 0 : 1)).toEqual(
      typeof message === 'string' ? message : expect.stringMatching(message),
    );
  });

  test('cohorts that name each other twice do not grow without bound', () => {
    const doubling = Array.from({ length: 18 }, (_, id) => of(id, cohort(id + 1), cohort(id + 1)));
    expect(refusal([...doubling, of(18, condition('x'))], 0)).toMatch(/too large/);
    expect(refusal([...doubling, of(18)], 0)).toMatch(/too large/);
    expect(refusal([of(1, condition('x'))])).toBeNull();
  });
});
