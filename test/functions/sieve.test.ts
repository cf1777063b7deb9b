import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { exclusionOf } from '../../functions/dispatch/exclusion.ts';
import { isUnwanted, Sieve } from '../../functions/dispatch/sieve.ts';
import { TextExclusions } from '../../functions/dispatch/texts.ts';
import { filterOf, Moment } from '../../functions/filter.ts';
import { filterGlobalsOf } from '../../functions/rules/globals.ts';
import { type Bytecode, compileBytecode } from '../../hog/bytecode/index.ts';
import { functionFilterExpression, readFunctionFilters } from '../../properties/index.ts';
import { rounds } from '../support/rounds.ts';

const compiled = (filters: object): Record<string, unknown> => ({
  ...filters,
  bytecode: compileBytecode(
    functionFilterExpression(readFunctionFilters(filters), {
      ...{ moment: { now: Date.UTC(2026, 0, 1), timezone: 'UTC' }, scope: 'realtime' },
    }),
  ),
});
const row = (filters: object, mappings: object[] | null = null) => ({
  filters: JSON.stringify(compiled(filters)),
  mappings: mappings && JSON.stringify(mappings.map((one) => ({ filters: compiled(one) }))),
});

interface Given {
  event?: string;
  properties?: Record<string, unknown>;
  person?: Record<string, unknown> | null;
}

/** Whether the sieve of some functions leaves an event out. */
async function leavesOut(
  rows: ReturnType<typeof row>[],
  { event = 'paid', properties = {}, person = {} }: Given,
) {
  const sieve = await Sieve.of(1, 1, rows);
  const look = sieve.look({ event, distinct_id: 'ada', properties });
  const known = { mode: person ? 'full' : 'propertyless', properties: JSON.stringify(person ?? {}) };
  return look !== undefined && isUnwanted(look, known);
}

/** Whether what is stored of an event excludes it. */
function isExcludedByText(bytecode: Bytecode, properties: object, person: object | null): boolean {
  const texts = new TextExclusions();
  const isExcluded = texts.of(exclusionOf(bytecode));
  const bytes = (value: object) => Buffer.from(JSON.stringify(value)).toString('latin1');
  return texts.open(bytes(properties), person ? bytes(person) : '') && isExcluded?.() === true;
}

const property = (key: string, value: unknown, operator = 'exact', type = 'event') => ({
  ...{ key, value, operator, type },
});
const on = (name: string, ...properties: object[]) => ({
  ...{ events: [{ id: name, type: 'events' }], properties },
});

describe('the sieve leaves out events', () => {
  const cases: [name: string, filters: object, event: Given, leftOut: boolean][] = [
    ['of another name', on('signed up'), {}, true],
    ['but not those of the name', on('paid'), {}, false],
    ['but none of a function that wants all', {}, {}, false],
    ['with another text', on('paid', property('plan', 'a')), { properties: { plan: 'b' } }, true],
    ['without the property', on('paid', property('plan', 'a')), {}, true],
    ['but not with the text', on('paid', property('plan', 'a')), { properties: { plan: 'a' } }, false],
    [
      'but not with a number, which may be equal',
      on('paid', property('plan', '5')),
      { properties: { plan: 5 } },
      false,
    ],
    [
      'with none of several texts',
      on('paid', property('plan', ['a', 'b'])),
      { properties: { plan: 'c' } },
      true,
    ],
    [
      'but not with one of them',
      on('paid', property('plan', ['a', 'b'])),
      { properties: { plan: 'b' } },
      false,
    ],
    [
      'of another person',
      on('paid', property('plan', 'a', 'exact', 'person')),
      { person: { plan: 'b' } },
      true,
    ],
    ['of nobody', on('paid', property('plan', 'a', 'exact', 'person')), { person: null }, true],
    [
      'but not of the person',
      on('paid', property('plan', 'a', 'exact', 'person')),
      { person: { plan: 'a' } },
      false,
    ],
    [
      'but not of a person with a number, which may be equal',
      on('paid', property('plan', '5', 'exact', 'person')),
      { person: { plan: 5 } },
      false,
    ],
    [
      'but not of a person with true, which may be equal',
      on('paid', property('plan', 'true', 'exact', 'person')),
      { person: { plan: true } },
      false,
    ],
    [
      'but not if another condition comes first that may fail',
      on('paid', property('url', 'x', 'regex'), property('plan', 'a')),
      { properties: { plan: 'b' } },
      false,
    ],
    [
      'if such a condition comes later',
      on('paid', property('plan', 'a'), property('url', 'x', 'regex')),
      { properties: { plan: 'b' } },
      true,
    ],
  ];
  test.each(cases)('%s', async (_name, filters, event, leftOut) => {
    expect(await leavesOut([row(filters)], event)).toBe(leftOut);
  });

  test('only if no function may want them', async () => {
    const one = row(on('paid', property('plan', 'a')));
    const other = row(on('paid', property('plan', 'b')));
    expect(await leavesOut([one, other], { properties: { plan: 'b' } })).toBe(false);
    expect(await leavesOut([one, other], { properties: { plan: 'c' } })).toBe(true);
  });

  test('if no mapping may want them', async () => {
    const mapped = row({}, [on('paid', property('plan', 'a')), on('left')]);
    expect(await leavesOut([mapped], { properties: { plan: 'b' } })).toBe(true);
    expect(await leavesOut([mapped], { properties: { plan: 'a' } })).toBe(false);
    expect(await leavesOut([mapped], { event: 'left' })).toBe(false);
  });

  test('never if a text is stored in another form', async () => {
    expect(await leavesOut([row(on('paid'))], { event: 'paid\u0000' })).toBe(false);
  });

  test('whose filter says no, and never others', async () => {
    const key = fc.constantFrom('a', 'b', 'constructor', '$elements_chain');
    const value = fc.constantFrom<unknown>('x', 'y', '5', 'true', '', 'ä"\\', 5, true, null, ['x'], { x: 1 });
    const operator = fc.constantFrom(
      'exact',
      'is_not',
      'icontains',
      'not_icontains',
      'is_set',
      'is_not_set',
      'regex',
      'gt',
    );
    const condition = fc
      .tuple(
        key,
        fc.constantFrom('x', 'y', '5', 'true', 'ä"', ['x', '5']),
        operator,
        fc.constantFrom('event', 'person'),
      )
      .map(([name, wanted, op, type]) => property(name, wanted, op, type));
    const entry = fc.tuple(fc.constantFrom('paid', 'left', null), fc.array(condition, { maxLength: 2 }));
    const filters = fc
      .tuple(fc.array(entry, { maxLength: 2 }), fc.array(condition, { maxLength: 3 }))
      .map(([entries, properties]) => ({
        events: entries.map(([id, own]) => ({ id, type: 'events', properties: own })),
        properties,
      }));
    const facts = fc.dictionary(key, value, { maxKeys: 3 });
    let [leftOut, excluded] = [0, 0];
    await fc.assert(
      fc.asyncProperty(
        filters,
        fc.constantFrom('paid', 'left', 'other'),
        facts,
        fc.option(facts),
        async (given, event, properties, person) => {
          const isLeftOut = await leavesOut([row(given)], { event, properties, person });
          if (isLeftOut) leftOut += 1;
          const byText = isExcludedByText(compiled(given).bytecode as Bytecode, properties, person);
          if (byText) excluded += 1;
          if (!isLeftOut && !byText) return;
          const moment = new Moment();
          moment.set(0, () => 1);
          const globals = filterGlobalsOf(
            { ...{ uuid: '', event, distinct_id: 'ada', timestamp: '' }, elements_chain: '', properties },
            person && { id: '', properties: person },
            [],
          );
          const isNamed =
            given.events.length === 0 || given.events.some(({ id }) => id === null || id === event);
          const verdict = filterOf(compiled(given).bytecode as Bytecode, moment)(globals);
          expect(verdict.matched).toBe(false);
          // What would be an error stays one.
          if (isNamed) expect(verdict.error).toBeUndefined();
        },
      ),
      { numRuns: rounds(1_000, 20_000) },
    );
    expect(leftOut).toBeGreaterThan(100);
    expect(excluded).toBeGreaterThan(5);
  });

  test('by the texts of what is stored, also of what is nested or written by others', () => {
    const plan = compiled(on('paid', property('plan', 'a'))).bytecode as Bytecode;
    expect(isExcludedByText(plan, { plan: 'b' }, null)).toBe(true);
    expect(isExcludedByText(plan, { text: '"plan":"a"' }, null)).toBe(true);
    expect(isExcludedByText(plan, { plan: 'a' }, null)).toBe(false);
    expect(isExcludedByText(plan, { $set: { plan: 'b' }, plan: 'a' }, null)).toBe(false);
    const five = compiled(on('paid', property('plan', '5'))).bytecode as Bytecode;
    expect(isExcludedByText(five, { plan: 5 }, null)).toBe(false);
    const texts = new TextExclusions();
    texts.of(exclusionOf(plan));
    expect(texts.open('{"plan": "b"}', '')).toBe(false);
    expect(texts.open('{"plan" : "b"}', '')).toBe(false);
    expect(texts.open('{"text" : "\\":x", "plan" : "a"}', '')).toBe(false);
  });
});
