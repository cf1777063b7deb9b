import { BOOL, DOCUMENT, FLOAT64, INT32, STRING, UUID } from './memory';
import { BOUND_TEXTS, BOUNDED, CUT, MAXIMUM, MINIMUM } from './page-layout';

/** How many bytes of a text are kept in the statistics. */
const BOUND_LENGTH: u32 = 64;
const BOUND_ROOM: u32 = 96;

/** Compares two byte strings. Returns -1, 0 or 1. */
function compare(a: u32, aLength: u32, b: u32, bLength: u32): i32 {
  const shared = min(aLength, bLength);
  let i: u32 = 0;
  while (i + 8 <= shared) {
    const x = bswap<u64>(load<u64>(a + i));
    const y = bswap<u64>(load<u64>(b + i));
    if (x !== y) return x < y ? -1 : 1;
    i += 8;
  }
  while (i < shared) {
    const x = load<u8>(a + i);
    const y = load<u8>(b + i);
    if (x !== y) return x < y ? -1 : 1;
    i += 1;
  }
  return aLength === bLength ? 0 : aLength < bLength ? -1 : 1;
}

export function boundText(column: u32, at: u32, length: u32): void {
  const least = load<u32>(column, BOUND_TEXTS);
  const greatest = least + BOUND_ROOM;
  const kept = min(length, BOUND_LENGTH);
  const first = load<u32>(column, BOUNDED) === 0;
  if (first || compare(at, kept, least, load<u32>(column, MINIMUM)) < 0) {
    memory.copy(least, at, kept);
    store<u32>(column, kept, MINIMUM);
  }
  const order = first ? 1 : compare(at, kept, greatest, load<u32>(column, MAXIMUM));
  if (order > 0) {
    memory.copy(greatest, at, kept);
    store<u32>(column, kept, MAXIMUM);
    store<u32>(column, u32(length > kept), CUT);
  } else if (order === 0 && length > kept) {
    store<u32>(column, 1, CUT);
  }
  store<u32>(column, 1, BOUNDED);
}

function boundInteger(column: u32, value: i64): void {
  const first = load<u32>(column, BOUNDED) === 0;
  if (first || value < load<i64>(column, MINIMUM)) store<i64>(column, value, MINIMUM);
  if (first || value > load<i64>(column, MAXIMUM)) store<i64>(column, value, MAXIMUM);
  store<u32>(column, 1, BOUNDED);
}

function boundReal(column: u32, value: f64): void {
  // NaN cannot be compared, so it stays out of the statistics.
  if (!(value >= -Infinity)) return;
  const first = load<u32>(column, BOUNDED) === 0;
  if (first || value < load<f64>(column, MINIMUM)) store<f64>(column, value, MINIMUM);
  if (first || value > load<f64>(column, MAXIMUM)) store<f64>(column, value, MAXIMUM);
  store<u32>(column, 1, BOUNDED);
}

/** Extends the minimum and maximum of a column by a value in Parquet's encoding. */
export function bound(column: u32, type: u32, at: u32, length: u32): void {
  if (type === STRING || type === UUID) boundText(column, at, length);
  else if (type === FLOAT64) boundReal(column, load<f64>(at));
  else if (type === INT32) boundInteger(column, load<i32>(at));
  else if (type === BOOL) boundInteger(column, load<u8>(at));
  else if (type !== DOCUMENT) boundInteger(column, load<i64>(at));
}
