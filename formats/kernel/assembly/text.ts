import { FLOAT64, INT32, readI32, readI64 } from './memory';
import { listSize } from './row';

/** Writes a number as JavaScript does. Returns the end of the output. */
declare function float(value: f64, to: u32): u32;

const HEX = memory.data<u8>([
  0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66,
]);
/** Tables of two hexadecimal digits for each byte, and two decimal digits for each number below 100. */
const PAIRS = memory.data(512);
const DECIMALS = memory.data(200);

export function prepareTables(): void {
  for (let i: u32 = 0; i < 256; i += 1) {
    store<u8>(<u32>PAIRS + i * 2, load<u8>(<u32>HEX + (i >> 4)));
    store<u8>(<u32>PAIRS + i * 2, load<u8>(<u32>HEX + (i & 15)), 1);
  }
  for (let i: u32 = 0; i < 100; i += 1) {
    store<u8>(<u32>DECIMALS + i * 2, <u8>(0x30 + i / 10));
    store<u8>(<u32>DECIMALS + i * 2, <u8>(0x30 + (i % 10)), 1);
  }
}

function hex(to: u32, byte: u32): void {
  store<u16>(to, load<u16>(<u32>PAIRS + byte * 2));
}

function two(to: u32, value: u32): void {
  store<u16>(to, load<u16>(<u32>DECIMALS + value * 2));
}

function bytes(to: u32, word: u64, count: u32): u32 {
  for (let i: u32 = 0; i < count; i += 1) hex(to + i * 2, <u32>((word >> (8 * (count - 1 - i))) & 0xff));
  return to + count * 2;
}

export function uuid(to: u32, at: u32): u32 {
  const high = <u64>readI64(at);
  const low = <u64>readI64(at + 8);
  to = bytes(to, high >> 32, 4);
  store<u8>(to, 0x2d);
  to = bytes(to + 1, (high >> 16) & 0xffff, 2);
  store<u8>(to, 0x2d);
  to = bytes(to + 1, high & 0xffff, 2);
  store<u8>(to, 0x2d);
  to = bytes(to + 1, low >> 48, 2);
  store<u8>(to, 0x2d);
  return bytes(to + 1, low & 0xffffffffffff, 6);
}

/** Writes the decimal digits of an unsigned number. */
export function digits(to: u32, value: u64): u32 {
  let length: u32 = 1;
  for (let rest = value; rest >= 10; rest /= 10) length += 1;
  let p = to + length;
  while (value >= 100) {
    p -= 2;
    two(p, <u32>(value % 100));
    value /= 100;
  }
  if (value >= 10) two(p - 2, <u32>value);
  else store<u8>(p - 1, <u8>(0x30 + value));
  return to + length;
}

export function integer(to: u32, value: i64): u32 {
  if (value >= 0) return digits(to, <u64>value);
  store<u8>(to, 0x2d);
  return digits(to + 1, 0 - <u64>value);
}

const DAY: i64 = 86_400_000_000;
/** The days from 0000-03-01 to 2000-01-01, where Postgres begins to count. */
const MARCH_OF_YEAR_0: i64 = 730_425;
export const NEVER: i64 = i64.MIN_VALUE;
export const ALWAYS: i64 = i64.MAX_VALUE;

/** Writes an instant as ISO 8601 in UTC with six decimals. Years outside 0000 to 9999 have a sign and six digits. */
export function instant(to: u32, micros: i64): u32 {
  let days = micros / DAY;
  let rest = micros % DAY;
  if (rest < 0) {
    rest += DAY;
    days -= 1;
  }
  // The calendar repeats every 146,097 days. Here, years begin in March.
  const shifted = days + MARCH_OF_YEAR_0;
  const era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097;
  const ofEra = <u32>(shifted - era * 146_097);
  const yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365;
  const ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100);
  const shiftedMonth = (5 * ofYear + 2) / 153;
  const day = ofYear - (153 * shiftedMonth + 2) / 5 + 1;
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  let year = <i32>(era * 400) + <i32>yearOfEra;
  if (month <= 2) year += 1;
  if (year < 0 || year > 9999) {
    store<u8>(to, year < 0 ? 0x2d : 0x2b);
    if (year < 0) year = -year;
    two(to + 1, year / 10_000);
    to += 3;
  }
  two(to, (year / 100) % 100);
  two(to + 2, year % 100);
  store<u8>(to, 0x2d, 4);
  two(to + 5, month);
  store<u8>(to, 0x2d, 7);
  two(to + 8, day);
  store<u8>(to, 0x54, 10);
  const seconds = <u32>(rest / 1_000_000);
  const fraction = <u32>(rest % 1_000_000);
  two(to + 11, seconds / 3600);
  store<u8>(to, 0x3a, 13);
  two(to + 14, (seconds / 60) % 60);
  store<u8>(to, 0x3a, 16);
  two(to + 17, seconds % 60);
  store<u8>(to, 0x2e, 19);
  two(to + 20, fraction / 10_000);
  two(to + 22, (fraction / 100) % 100);
  two(to + 24, fraction % 100);
  store<u8>(to, 0x5a, 26);
  return to + 27;
}

/** Writes `infinity` or `-infinity`, as Postgres does. */
export function forever(to: u32, micros: i64): u32 {
  if (micros === NEVER) {
    store<u8>(to, 0x2d);
    to += 1;
  }
  store<u64>(to, 0x7974696e69666e69);
  return to + 8;
}

/**
 * Writes a number as JavaScript does, except that -0 keeps its sign. A number that is not finite is not valid in JSON.
 */
export function real(to: u32, value: f64): u32 {
  if (value === Math.trunc(value) && Math.abs(value) < 9007199254740992) {
    if (value === 0 && reinterpret<i64>(value) < 0) {
      store<u8>(to, 0x2d);
      to += 1;
    }
    return integer(to, <i64>value);
  }
  return float(value, to);
}

/** Returns whether any of 16 bytes must be escaped in a JSON string. */
function special(word: v128): bool {
  const control = v128.lt<u8>(word, i8x16.splat(0x20));
  const quote = v128.eq<u8>(word, i8x16.splat(0x22));
  const backslash = v128.eq<u8>(word, i8x16.splat(0x5c));
  return v128.any_true(v128.or(v128.or(control, quote), backslash));
}

/** Writes the content of a JSON string. */
export function escapeText(to: u32, at: u32, length: u32): u32 {
  const end = at + length;
  while (at < end) {
    const word = v128.load(at);
    v128.store(to, word);
    if (!special(word)) {
      const step = min<u32>(16, end - at);
      at += step;
      to += step;
      continue;
    }
    const stop = min<u32>(at + 16, end);
    while (at < stop) {
      const byte = load<u8>(at);
      at += 1;
      if (byte >= 0x20 && byte !== 0x22 && byte !== 0x5c) {
        store<u8>(to, byte);
        to += 1;
        continue;
      }
      store<u8>(to, 0x5c);
      let letter: u8 = byte;
      if (byte === 0x08) letter = 0x62;
      else if (byte === 0x09) letter = 0x74;
      else if (byte === 0x0a) letter = 0x6e;
      else if (byte === 0x0c) letter = 0x66;
      else if (byte === 0x0d) letter = 0x72;
      store<u8>(to, letter, 1);
      to += 2;
      if (letter >= 0x20) continue;
      store<u8>(to - 1, 0x75);
      store<u16>(to, 0x3030);
      hex(to + 2, byte);
      to += 4;
    }
  }
  return to;
}

/** Returns how many bytes `escapeText` writes. */
export function escapedLength(at: u32, length: u32): u64 {
  let total: u64 = length;
  for (const end = at + length; at < end; at += 1) {
    const byte = load<u8>(at);
    if (byte === 0x22 || byte === 0x5c) total += 1;
    else if (byte < 0x20) total += 5;
  }
  return total;
}

/** Writes a JSON document on one line. Bytes below 0x20 can only be white space between tokens, and become spaces. */
export function document(to: u32, at: u32, length: u32): u32 {
  const space = i8x16.splat(0x20);
  for (let i: u32 = 0; i < length; i += 16) v128.store(to + i, v128.max<u8>(v128.load(at + i), space));
  return to + length;
}

/** Writes a list as a JSON array. */
export function list(to: u32, at: u32): u32 {
  const count = listSize(at);
  store<u8>(to, 0x5b);
  to += 1;
  at += 20;
  for (let i = 0; i < count; i += 1) {
    if (i > 0) {
      store<u8>(to, 0x2c);
      to += 1;
    }
    const length = readI32(at);
    at += 4;
    if (length < 0) {
      store<u32>(to, 0x6c6c756e);
      to += 4;
    } else {
      store<u8>(to, 0x22);
      to = escapeText(to + 1, at, length);
      store<u8>(to, 0x22);
      to += 1;
      at += length;
    }
  }
  store<u8>(to, 0x5d);
  return to + 1;
}

/** Writes a number for JSON or CSV. */
export function number(to: u32, at: u32, type: u32): u32 {
  if (type === INT32) return integer(to, <i64>readI32(at));
  if (type === FLOAT64) return real(to, reinterpret<f64>(readI64(at)));
  return integer(to, readI64(at));
}
