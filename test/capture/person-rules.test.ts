import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { limitPersonChanges } from '../../capture/parse/event.ts';
import { idKey, People, type StoredPerson } from '../../capture/persons/people.ts';
import { personId } from '../../db/person-ids.ts';
import { rounds } from '../support/rounds.ts';
import {
  modelOf,
  type Operation,
  operation,
  permutations,
  propertiesOf,
  THREE_LOGINS,
} from './person-model.ts';
import { capturedEvent } from './support.ts';

const PROJECT = 1;

/** The rules with a memory instead of a database: each call is a transaction. */
class Memory {
  readonly refusals: string[] = [];
  #people = new Map<string, StoredPerson>();

  transaction(operations: readonly Operation[]): void {
    const people = new People({
      known: (projectId, distinctId) => this.#people.get(idKey(projectId, distinctId)),
      write: (properties) => JSON.stringify(properties),
    });
    for (const one of operations) {
      const properties = propertiesOf(one);
      limitPersonChanges(one.event, properties);
      const event = capturedEvent({ event: one.event, distinct_id: one.id, properties });
      people.apply(PROJECT, event, ({ reason }) => this.refusals.push(reason));
    }
    for (const { stored, absorbed, newIds, ...draft } of people.outcome()) {
      const person: StoredPerson = { ...draft, version: stored ? stored.version + 1 : 0, changedAt: 0 };
      const before = new Set([stored, ...absorbed].map((one) => one?.id));
      for (const [key, one] of this.#people) if (before.has(one.id)) this.#people.set(key, person);
      for (const id of newIds) this.#people.set(idKey(PROJECT, id), person);
    }
  }

  /** Each person once, in the form of the model. */
  persons() {
    const byId = Map.groupBy(this.#people, ([, person]) => person.id);
    return [...byId.values()]
      .map((ids) => ({
        id: ids[0]?.[1].id,
        ids: ids.map(([key]) => key.slice(`${PROJECT}:`.length)).sort(),
        identified: ids[0]?.[1].isIdentified,
        properties: ids[0]?.[1].properties,
      }))
      .sort((a, b) => ((a.ids[0] as string) < (b.ids[0] as string) ? -1 : 1));
  }

  personOf(distinctId: string): StoredPerson | undefined {
    return this.#people.get(idKey(PROJECT, distinctId));
  }
}

/** The same operations, cut into transactions. */
function run(transactions: readonly (readonly Operation[])[]): Memory {
  const memory = new Memory();
  for (const one of transactions) memory.transaction(one);
  return memory;
}

const modelled = (operations: readonly Operation[]) =>
  modelOf(operations).map(({ founder, ...person }) => ({ id: personId(PROJECT, founder), ...person }));

test('any operations, cut into transactions in any way, end as the model says', () => {
  const transactions = fc.array(fc.array(operation, { minLength: 1, maxLength: 5 }), {
    minLength: 1,
    maxLength: 5,
  });
  fc.assert(
    fc.property(transactions, (cut) => {
      expect(run(cut).persons()).toEqual(modelled(cut.flat()));
    }),
    { numRuns: rounds(1_500, 100_000) },
  );
});

test('two people who logged in are never joined, unless by $merge_dangerously', () => {
  const kind = operation.filter((one) => one.event !== '$merge_dangerously');
  const ids = ['a', 'b', 'c', 'd'];
  const pairs = ids.flatMap((one) =>
    ids.filter((other) => other > one).map((other) => [one, other] as const),
  );
  fc.assert(
    fc.property(fc.array(kind, { minLength: 1, maxLength: 14 }), (operations) => {
      const memory = new Memory();
      const apart = new Set<(typeof pairs)[number]>();
      for (const one of operations) {
        memory.transaction([one]);
        const logsIn = one.event === '$identify' && one.other !== one.id && !one.personless;
        if (logsIn && ids.includes(one.other as string)) {
          expect(memory.personOf(one.id)?.isIdentified).toBe(true);
        }
        const joined = [...apart].filter(([x, y]) => memory.personOf(x) === memory.personOf(y));
        expect(joined).toEqual([]);
        for (const pair of pairs) {
          const [x, y] = pair.map((id) => memory.personOf(id));
          if (x?.isIdentified && y?.isIdentified && x !== y) apart.add(pair);
        }
      }
    }),
    { numRuns: rounds(1_000, 50_000) },
  );
});

describe('three logins on one device', () => {
  test('in their order, the second and the third person stay two', () => {
    const memory = run([THREE_LOGINS]);
    expect(memory.persons().map(({ ids, identified }) => [ids, identified])).toEqual([
      [['a', 'x'], true],
      [['b'], true],
      [['c'], true],
    ]);
  });
  test('in any order, in one transaction and in one for each, as the model says', () => {
    for (const order of permutations(THREE_LOGINS)) {
      const expected = modelled(order);
      expect(run([order]).persons()).toEqual(expected);
      expect(run(order.map((one) => [one])).persons()).toEqual(expected);
    }
  });
});

describe('$create_alias of two known ids', () => {
  const seen = (id: string): Operation => ({ event: 'seen', id });
  const logIn = (id: string): Operation => ({ event: '$identify', id, other: `device of ${id}` });
  const alias: Operation = { event: '$create_alias', id: 'own', other: 'alias' };
  const cases: [string, Operation[], string | undefined][] = [
    ['nobody is identified: the alias stays', [seen('own'), seen('alias')], 'alias'],
    ['the alias is identified: it stays', [seen('own'), logIn('alias')], 'alias'],
    ['only the distinct_id is identified: it stays', [logIn('own'), seen('alias')], 'own'],
    ['both are identified: they stay two', [logIn('own'), logIn('alias')], undefined],
  ];
  test.each(cases)('%s', (_name, before, stays) => {
    const expected = run([before]).personOf(stays ?? 'own')?.id;
    for (const memory of [run([[...before, alias]]), run([before, [alias]])]) {
      const [own, other] = [memory.personOf('own'), memory.personOf('alias')];
      expect([own?.isIdentified, other?.isIdentified]).toEqual([true, true]);
      if (stays !== undefined) {
        expect([own?.id, other?.id]).toEqual([expected, expected]);
        expect(memory.refusals).toEqual([]);
      } else {
        expect(own).not.toBe(other);
        expect(memory.refusals).toEqual(['cannot_merge_already_identified']);
      }
    }
  });
});

test("the events of browsers without cookies are nobody's, even if somebody was given their id long ago", () => {
  const id = '$posthog_cookieless';
  const stranger: StoredPerson = {
    projectId: PROJECT,
    id: personId(PROJECT, 'ann'),
    createdAt: 0,
    isIdentified: true,
    version: 1,
    changedAt: 0,
    properties: { name: 'Ann' },
    text: '{"name":"Ann"}',
  };
  const people = new People({ known: () => stranger, write: JSON.stringify });
  const event = capturedEvent({
    event: 'seen',
    distinct_id: id,
    properties: { $process_person_profile: false },
  });
  expect(people.apply(PROJECT, event, () => {})).toEqual({
    id: personId(PROJECT, id),
    properties: '{}',
    mode: 'propertyless',
  });
});
