import type { HogValue } from '../../hog/runtime/values.ts';

const MOST_NAMES = 100;
const LONGEST_NAME = 200;

/** Lists the properties that a program added, changed or removed, up to a number. */
export function changedNames(
  before: Readonly<Record<string, unknown>>,
  after: ReadonlyMap<HogValue, HogValue>,
): string[] {
  const names: string[] = [];
  let known = 0;
  for (const [key, value] of after) {
    const name = String(key);
    const isKnown = Object.hasOwn(before, name);
    if (isKnown) known += 1;
    if (isKnown && same(before[name], value)) continue;
    if (names.push(name.slice(0, LONGEST_NAME)) === MOST_NAMES) return names;
  }
  const all = Object.keys(before);
  if (known === all.length) return names;
  for (const name of all)
    if (!after.has(name) && names.push(name.slice(0, LONGEST_NAME)) === MOST_NAMES) return names;
  return names;
}

/** Answers whether a value of a program is the same JSON as before, whatever the order of keys. */
function same(before: unknown, after: HogValue): boolean {
  if (before === after) return true;
  if (typeof before !== 'object' || typeof after !== 'object' || before === null || after === null)
    return false;
  if (Array.isArray(before)) {
    const list = after as readonly HogValue[];
    return (
      Array.isArray(after) &&
      before.length === list.length &&
      before.every((item, index) => same(item, list[index]))
    );
  }
  if (!(after instanceof Map)) return false;
  const keys = Object.keys(before);
  return (
    keys.length === after.size &&
    keys.every((key) => after.has(key) && same((before as Record<string, unknown>)[key], after.get(key)))
  );
}

/** Does the same for two objects of which only changed values are other ones. */
export function shallowlyChanged(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): string[] {
  const names: string[] = [];
  for (const name of Object.keys(after)) {
    if (Object.hasOwn(before, name) && before[name] === after[name]) continue;
    if (names.push(name.slice(0, LONGEST_NAME)) === MOST_NAMES) return names;
  }
  for (const name of Object.keys(before)) {
    if (Object.hasOwn(after, name)) continue;
    if (names.push(name.slice(0, LONGEST_NAME)) === MOST_NAMES) return names;
  }
  return names;
}
