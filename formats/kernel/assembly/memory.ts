// The host describes the columns in memory. formats/kernel/layout.ts contains the same layout.

export const STRING: u32 = 0;
export const DOCUMENT: u32 = 1;
export const UUID: u32 = 2;
export const INT32: u32 = 3;
export const INT64: u32 = 4;
export const FLOAT64: u32 = 5;
export const BOOL: u32 = 6;
export const TIMESTAMP: u32 = 7;
export const STRINGS: u32 = 8;

// The results of a function.
export const MORE: i32 = 1;
export const END: i32 = 2;
export const FAULT: i32 = 3;
export const REJECT: i32 = 4;
export const FULL: i32 = 5;
export const DICTIONARY: i32 = 6;
export const ROWS: i32 = 7;

// The reasons why a row is faulty or rejected.
export const FIELD_COUNT: i32 = 1;
export const FIELD_LENGTH: i32 = 2;
export const FIELD_WIDTH: i32 = 3;
export const NULL_VALUE: i32 = 4;
export const NESTED_LIST: i32 = 5;
export const BROKEN_LIST: i32 = 6;

/** The size of a column's description, in bytes. */
export const COLUMN: u32 = 128;

export function columnType(column: u32): u32 {
  return load<u32>(column);
}
export function columnNullable(column: u32): bool {
  return load<u32>(column, 4) !== 0;
}
export function keyPointer(column: u32): u32 {
  return load<u32>(column, 8);
}
export function keyLength(column: u32): u32 {
  return load<u32>(column, 12);
}

export function readI32(at: u32): i32 {
  return bswap<i32>(load<i32>(at));
}
export function readI64(at: u32): i64 {
  return bswap<i64>(load<i64>(at));
}

/**
 * Copies bytes, 16 at a time. It touches up to 15 bytes behind source and target, so every region has a margin. Most
 * copies are short, and for those this is faster than memory.copy.
 */
export function copyLoose(to: u32, from: u32, length: u32): u32 {
  if (length > 256) {
    memory.copy(to, from, length);
  } else {
    for (let i: u32 = 0; i < length; i += 16) v128.store(to + i, v128.load(from + i));
  }
  return to + length;
}
