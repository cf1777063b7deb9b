// The rules of persons once more, as plainly as they can be said, for tests to compare with.
import fc from 'fast-check';

export interface Operation {
  event: 'seen' | '$identify' | '$create_alias' | '$merge_dangerously';
  id: string;
  /** The anonymous id, or the alias. */
  other?: string;
  set?: Record<string, number>;
  setOnce?: Record<string, number>;
  /** Sent without a profile: it neither makes nor changes anybody. */
  personless?: boolean;
}

export interface ModelPerson {
  /** Whose first event made it; the person's uuid follows from it. */
  founder: string;
  ids: string[];
  identified: boolean;
  properties: Record<string, number>;
}

const personOf = (people: ModelPerson[], id: string) => people.find((person) => person.ids.includes(id));

function found(people: ModelPerson[], id: string): ModelPerson {
  const person = { founder: id, ids: [id], identified: false, properties: {} };
  people.push(person);
  return person;
}

function absorb(people: ModelPerson[], target: ModelPerson, source: ModelPerson): void {
  target.ids.push(...source.ids);
  target.properties = { ...source.properties, ...target.properties };
  target.identified = true;
  people.splice(people.indexOf(source), 1);
}

/** Ids that many people share by mistake, as far as the tests use them. */
export const SHARED_IDS = ['null', 'anonymous'];

function merge(people: ModelPerson[], event: string, into: string, from: string): void {
  if (into === from || SHARED_IDS.includes(into) || SHARED_IDS.includes(from)) return;
  const [target, source] = [personOf(people, into), personOf(people, from)];
  if (!target && !source) {
    const person = found(people, into);
    person.ids.push(from);
    person.identified = true;
  } else if (!target || !source || target === source) {
    const person = (target ?? source) as ModelPerson;
    for (const id of [into, from]) if (!person.ids.includes(id)) person.ids.push(id);
    person.identified = true;
  } else if (event === '$merge_dangerously' || !source.identified) {
    absorb(people, target, source);
  } else if (event === '$create_alias') {
    // Only an alias works in both directions. Two identified people stay two.
    if (!target.identified) absorb(people, source, target);
  } else {
    // Refused. Whoever logged in is known from now on all the same.
    target.identified = true;
  }
}

/** People after the operations, one after the other; in an order that can be compared. */
export function modelOf(operations: readonly Operation[]): ModelPerson[] {
  const people: ModelPerson[] = [];
  for (const { event, id, other, set, setOnce, personless } of operations) {
    if (personless) continue;
    if (other !== undefined) {
      if (event === '$identify' || event === '$merge_dangerously') merge(people, event, id, other);
      if (event === '$create_alias') merge(people, event, other, id);
    }
    const person = personOf(people, id) ?? found(people, id);
    person.properties = { ...setOnce, ...person.properties, ...set };
  }
  for (const person of people) person.ids.sort();
  return people.sort((a, b) => ((a.ids[0] as string) < (b.ids[0] as string) ? -1 : 1));
}

/** The properties of the event that asks for an operation. */
export function propertiesOf({ event, other, set, setOnce, personless }: Operation): Record<string, unknown> {
  const own = event === '$identify' ? { $anon_distinct_id: other } : { alias: other };
  return {
    ...(other === undefined ? {} : own),
    ...(set ? { $set: set } : {}),
    ...(setOnce ? { $set_once: setOnce } : {}),
    ...(personless ? { $process_person_profile: false } : {}),
  };
}

const names = fc.constantFrom('a', 'b', 'c', 'd');
const others = fc.oneof(
  { weight: 9, arbitrary: names },
  { weight: 1, arbitrary: fc.constantFrom(...SHARED_IDS) },
);
const value = fc.record({ x: fc.integer({ min: 0, max: 99 }) });

/** Any operation on a few ids, so that they meet often. */
export const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({ event: fc.constant('seen' as const), id: names, set: value }),
  fc.record({ event: fc.constant('seen' as const), id: names, setOnce: value }),
  fc.record({ event: fc.constant('$identify' as const), id: names, other: others, set: value }),
  fc.record({ event: fc.constant('$create_alias' as const), id: names, other: others }),
  fc.record({ event: fc.constant('$merge_dangerously' as const), id: others, other: names }),
  fc.record({
    event: fc.constant('$identify' as const),
    id: names,
    other: names,
    personless: fc.constant(true),
  }),
);

/** Three people log in on one device, one after the other; the second and the third were seen elsewhere before. */
export const THREE_LOGINS: readonly Operation[] = [
  { event: '$identify', id: 'a', other: 'x' },
  { event: 'seen', id: 'b' },
  { event: 'seen', id: 'c' },
  { event: '$identify', id: 'b', other: 'a' },
  { event: '$identify', id: 'c', other: 'b' },
];

/** All orders of a few things. */
export function permutations<T>(things: readonly T[]): T[][] {
  if (things.length <= 1) return [[...things]];
  return things.flatMap((thing, index) =>
    permutations([...things.slice(0, index), ...things.slice(index + 1)]).map((rest) => [thing, ...rest]),
  );
}
