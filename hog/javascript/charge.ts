import type { Meter } from '../runtime/meter.ts';
import { costOf } from '../runtime/values.ts';

/** The meter of what runs now: operators do not get the run, and still have to pay for large values. */
let active: Meter | null = null;

/** Gives the meter that was active before; whoever takes over gives it back. */
export function activate(meter: Meter | null): Meter | null {
  const outer = active;
  active = meter;
  return outer;
}

/** Small values cost nothing but the step of their statement. */
const FREE = 64;

/** For work that looks at a text or at the elements of a list. */
export function charge<T>(value: T): T {
  if (typeof value === 'string') {
    if (value.length > FREE) active?.step(value.length >> 7);
  } else if (Array.isArray(value) && value.length > FREE) active?.step(value.length >> 4);
  return value;
}

/** For work that writes a list out, with all that is in it. */
export function chargeWhole<T>(value: T): T {
  if (Array.isArray(value) && active) costOf(value, active);
  return charge(value);
}
