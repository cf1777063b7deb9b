import type { Meter } from './meter.ts';
import { COST, type HogValue, MAX_VALUE_DEPTH, measureWhole, tooDeep } from './values.ts';

// The sizes of lists and dictionaries are remembered, so that the machine can count its memory without looking at every
// element for every instruction. A remembered size can be too large or too small where values inside others were
// changed later. Therefore it only serves for counting. Whatever reads a whole value measures it anew (`costOf`).

const SIZE = Symbol('size');
const DEPTH = Symbol('depth');

type Container = (HogValue[] | Map<HogValue, HogValue>) & { [SIZE]?: number; [DEPTH]?: number };

const isContainer = (value: object): value is Container => Array.isArray(value) || value instanceof Map;

/** Returns the size of a value in bytes, as it was when its parts were put together. */
export function sizeOf(value: HogValue, meter: Meter): number {
  if (typeof value === 'string') return COST + value.length;
  if (typeof value !== 'object' || value === null) return COST;
  if (!isContainer(value)) return measure(value, meter, 0).size;
  return value[SIZE] ?? remembered(value, meter);
}

/**
 * Measures a new list or dictionary if one of its `items` is a list or a dictionary too. Fails if it is too large or nested
 * too deep. A flat one is not measured. `literals` has a bit for each of the first items that was checked as a part of the
 * same expression: if it was not measured, it is as deep as its brackets in the source, which the parser limits.
 */
export function checkNew(
  value: HogValue[] | Map<HogValue, HogValue>,
  items: readonly HogValue[],
  literals: number,
  meter: Meter,
): void {
  const container: Container = value;
  if (container[SIZE] !== undefined) return;
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (typeof item !== 'object' || item === null) continue;
    if (i < LITERALS && (literals >> i) & 1 && (item as Container)[SIZE] === undefined) continue;
    remembered(container, meter);
    return;
  }
}

/** How many items can have a bit in `literals`. */
export const LITERALS = 30;

/** Measures a list or a dictionary for the first time. */
function remembered(value: Container, meter: Meter): number {
  const { size } = measure(value, meter, 0);
  return isExceeded(value, meter) ? exactly(value, meter) : size;
}

const isExceeded = (value: Container, meter: Meter): boolean =>
  (value[SIZE] ?? 0) > meter.limits.maxMemory || (value[DEPTH] ?? 0) > MAX_VALUE_DEPTH;

/** Measures a value whose remembered size exceeds a limit. Fails if it really does. */
function exactly(value: Container, meter: Meter): number {
  const { total, deepest } = measureWhole(value, meter);
  value[SIZE] = total;
  value[DEPTH] = deepest;
  return total;
}

interface Measured {
  size: number;
  depth: number;
}

const SCALAR: Measured = { size: COST, depth: 0 };

/** Measures a value, and remembers the sizes of the lists and dictionaries in it. */
function measure(value: HogValue, meter: Meter, level: number): Measured {
  if (typeof value === 'string') return { size: COST + value.length, depth: 0 };
  if (typeof value !== 'object' || value === null) return SCALAR;
  if (level > MAX_VALUE_DEPTH) tooDeep();
  const known = isContainer(value) ? value : null;
  if (known?.[SIZE] !== undefined) return { size: known[SIZE], depth: known[DEPTH] ?? 0 };
  // A value that contains itself counts once.
  if (known) known[SIZE] = COST;
  let size = COST;
  let depth = 0;
  const add = (item: HogValue) => {
    if (typeof item === 'number') {
      size += COST;
      return;
    }
    const inner = measure(item, meter, level + 1);
    size += inner.size;
    depth = Math.max(depth, inner.depth);
  };
  if (Array.isArray(value)) {
    for (const item of value) add(item);
    meter.step(value.length >> 4);
  } else if (value instanceof Map) {
    for (const [key, item] of value) {
      add(key);
      add(item);
    }
    meter.step(value.size >> 3);
  } else {
    for (const key of Object.keys(value)) {
      size += COST + key.length;
      add((value as Record<string, unknown>)[key]);
    }
  }
  if (known) {
    known[SIZE] = size;
    known[DEPTH] = depth + 1;
  }
  return { size, depth: depth + 1 };
}

/** Corrects the remembered size of a list or a dictionary that has grown by `bytes` and now contains `item`. */
export function resize(
  value: HogValue[] | Map<HogValue, HogValue>,
  bytes: number,
  item: HogValue,
  meter: Meter,
): void {
  const container: Container = value;
  if (container[SIZE] === undefined) return;
  container[SIZE] += bytes;
  if (typeof item === 'object' && item !== null) {
    container[DEPTH] = Math.max(container[DEPTH] ?? 0, 1 + measure(item, meter, 0).depth);
  }
  if (isExceeded(container, meter)) exactly(container, meter);
}

/** Gives a new list the size that it must have. */
export function setSize(
  list: HogValue[],
  size: number,
  like: HogValue[],
  item: HogValue,
  meter: Meter,
): void {
  const container: Container = list;
  container[SIZE] = size;
  container[DEPTH] = (like as Container)[DEPTH] ?? 1;
  resize(list, 0, item, meter);
}
