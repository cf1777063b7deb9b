// The rules of persons once more, as plainly as they can be said, for tests to compare with.

export interface Operation {
  event: 'seen' | '$identify' | '$create_alias' | '$merge_dangerously';
  id: string;
  /** The anonymous id, or the alias. */
  other?: string;
  set?: Record<string, number>;
  setOnce?: Record<string, number>;
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

function merge(people: ModelPerson[], into: string, from: string, always: boolean): void {
  if (into === from) return;
  const [target, source] = [personOf(people, into), personOf(people, from)];
  if (!target && !source) {
    const person = found(people, into);
    person.ids.push(from);
    person.identified = true;
  } else if (!target || !source || target === source) {
    const person = (target ?? source) as ModelPerson;
    for (const id of [into, from]) if (!person.ids.includes(id)) person.ids.push(id);
    person.identified = true;
  } else if (always || !source.identified) {
    target.ids.push(...source.ids);
    target.properties = { ...source.properties, ...target.properties };
    target.identified = true;
    people.splice(people.indexOf(source), 1);
  }
}

/** People after the operations, one after the other; in an order that can be compared. */
export function modelOf(operations: readonly Operation[]): ModelPerson[] {
  const people: ModelPerson[] = [];
  for (const { event, id, other, set, setOnce } of operations) {
    if (other !== undefined) {
      if (event === '$identify') merge(people, id, other, false);
      if (event === '$create_alias') merge(people, other, id, false);
      if (event === '$merge_dangerously') merge(people, id, other, true);
    }
    const person = personOf(people, id) ?? found(people, id);
    person.properties = { ...setOnce, ...person.properties, ...set };
  }
  for (const person of people) person.ids.sort();
  return people.sort((a, b) => ((a.ids[0] as string) < (b.ids[0] as string) ? -1 : 1));
}

/** All orders of a few things. */
export function permutations<T>(things: readonly T[]): T[][] {
  if (things.length <= 1) return [[...things]];
  return things.flatMap((thing, index) =>
    permutations([...things.slice(0, index), ...things.slice(index + 1)]).map((rest) => [thing, ...rest]),
  );
}
