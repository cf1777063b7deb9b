import type { Meter } from '../runtime/meter.ts';
import { costOf } from '../runtime/values.ts';

/**
 * The meter of the current run. Operators do not receive the run as an argument, but must charge it for large values.
 */
let active: Meter | null = null;

/** Sets the active meter and returns the one before it. The caller must restore that one at the end. */
export function activate(meter: Meter | null): Meter | null {
  const outer = active;
  active = meter;
  return outer;
}

/** Values up to this size are covered by the step of their statement. */
const FREE = 64;

/** Charges the meter for an operation that reads a text or the elements of a list. */
export function charge<T>(value: T): T {
  if (typeof value === 'string') {
    if (value.length > FREE) active?.step(value.length >> 7);
  } else if (Array.isArray(value) && value.length > FREE) active?.step(value.length >> 4);
  return value;
}

/** Charges the meter for an operation that converts a list to text, including all nested values. */
export function chargeWhole<T>(value: T): T {
  if (Array.isArray(value) && active) costOf(value, active);
  return charge(value);
}
