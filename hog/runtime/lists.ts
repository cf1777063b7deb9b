import type { Meter } from './meter.ts';
import { setSize, sizeOf } from './sizes.ts';
import { COST, type HogValue } from './values.ts';

// Functions such as `arrayPushBack` return a new list and leave the old one as it is. Where the old list is certainly not
// used again, because one variable alone holds it and gets the result, they change it in place. A list that they have
// made for a variable is owned by it. Whoever reads the variable in a way that could keep the list lends it first:
// from then on it is an ordinary list, and the next change copies it.

const OWNED = Symbol('owned');

type List = HogValue[] & { [OWNED]?: boolean };

/** Marks a new list as held by one variable only. */
export function own(list: HogValue[]): HogValue[] {
  (list as List)[OWNED] = true;
  return list;
}

export const isOwned = (value: HogValue): boolean => Array.isArray(value) && (value as List)[OWNED] === true;

/** Ends the ownership of a list, because something else may hold it from now on. */
export function lend<T>(value: T): T {
  if (isOwned(value)) (value as List)[OWNED] = false;
  return value;
}

interface Change {
  /** Changes the list, and returns by how many bytes it grew. */
  apply(list: HogValue[], value: HogValue, meter: Meter): number;
  args: number;
}

const released = (list: HogValue[], value: HogValue, meter: Meter): number =>
  value === undefined ? 0 : -Math.min(sizeOf(value, meter), sizeOf(list, meter) - COST * (1 + list.length));

export const listChanges: ReadonlyMap<string, Change> = new Map<string, Change>([
  [
    'arrayPushBack',
    {
      args: 2,
      apply: (list, value, meter) => {
        const size = sizeOf(value, meter);
        list.push(value);
        return size;
      },
    },
  ],
  [
    'arrayPushFront',
    {
      args: 2,
      apply: (list, value, meter) => {
        meter.step(list.length >> 10);
        const size = sizeOf(value, meter);
        list.unshift(value);
        return size;
      },
    },
  ],
  ['arrayPopBack', { args: 1, apply: (list, _value, meter) => released(list, list.pop(), meter) }],
  [
    'arrayPopFront',
    {
      args: 1,
      apply: (list, _value, meter) => {
        meter.step(list.length >> 10);
        return released(list, list.shift(), meter);
      },
    },
  ],
]);

/** Library functions that do not keep their arguments. The result contains elements of a list at most. */
export const LOOKING = new Set([
  ...[
    'length',
    'empty',
    'notEmpty',
    'typeof',
    'isNull',
    'isNotNull',
    'has',
    'indexOf',
    'in',
    'keys',
    'values',
  ],
  ...['arrayReverse', 'arrayStringConcat', 'jsonStringify', 'toString', 'print', 'concat'],
]);

/** Library functions that call a function of the program if they get one. */
export const SORTING = new Set(['arraySort', 'arrayReverseSort']);

/** How many elements were copied, for tests and measurements. */
export const copies = { elements: 0 };

/**
 * Calls one of the functions above. `inPlace` says that the result replaces the only other reference to the list, if the
 * list is owned.
 */
export function changeList(
  name: string,
  [given, value]: readonly HogValue[],
  inPlace: boolean,
  meter: Meter,
): HogValue[] {
  const { apply } = listChanges.get(name) as Change;
  const list: HogValue[] = Array.isArray(given) ? given : [];
  const before = sizeOf(list, meter);
  let changed = list;
  if (!inPlace || !isOwned(list)) {
    changed = [...list];
    copies.elements += list.length;
    meter.work(list.length * COST);
  }
  setSize(changed, before + apply(changed, value, meter), list, value, meter);
  return changed;
}
