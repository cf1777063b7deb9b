import { xxh64 } from './hash';
import {
  BOOL,
  COLUMN,
  columnType,
  copyLoose,
  DOCUMENT,
  FLOAT64,
  FULL,
  keyLength,
  keyPointer,
  readI64,
  STRING,
  STRINGS,
  TIMESTAMP,
  UUID,
} from './memory';
import {
  columnCount,
  columns,
  countRow,
  fieldAt,
  fieldLength,
  next,
  setNeeded,
  setPosition,
  walk,
} from './row';
import {
  ALWAYS,
  document,
  escapedLength,
  escapeText,
  forever,
  instant,
  list,
  NEVER,
  number,
  uuid,
} from './text';

/** The end of the encoded rows. */
export let written: u32 = 0;
/** The bytes that a row needs for keys, punctuation and all values but texts. */
let fixedRoom: u32 = 0;
/** By what factor a value can grow when it is encoded. */
let growth: u32 = 0;

export function prepareLines(csv: bool): void {
  growth = csv ? 2 : 6;
  fixedRoom = 64;
  for (let i: u32 = 0; i < columnCount; i += 1) {
    const column = columns + i * COLUMN;
    fixedRoom += keyLength(column) + 48;
    // An array is written as JSON first and then quoted.
    if (csv && columnType(column) === STRINGS) growth = 20;
  }
}

/** Returns the most bytes that the current row needs. This is more exact than the estimate from its size. */
function room(csv: bool): u64 {
  let total: u64 = fixedRoom;
  for (let i: u32 = 0; i < columnCount; i += 1) {
    const length = fieldLength(i);
    if (length <= 0) continue;
    const type = columnType(columns + i * COLUMN);
    if (type === STRINGS) total += <u64>length * (csv ? 20 : 6);
    else if (csv) total += <u64>length * 2;
    else total += type === STRING ? escapedLength(fieldAt(i), length) : <u64>length;
  }
  return total;
}

/**
 * Encodes complete rows from `at` until the input ends or the output (`to` to `limit`) is full. Sets `position` to
 * where it stopped and `written` to the end of the output.
 */
function lines(at: u32, end: u32, to: u32, limit: u32, csv: bool): i32 {
  while (true) {
    const status = walk(at, end);
    if (status !== 0) {
      setPosition(at);
      written = to;
      return status;
    }
    const left = <u64>(limit - to);
    if (<u64>(next - at) * growth + fixedRoom > left) {
      const least = room(csv);
      if (least > left) {
        setNeeded(<u32>min<u64>(least, u32.MAX_VALUE));
        setPosition(at);
        written = to;
        return FULL;
      }
    }
    to = csv ? csvRow(to) : jsonRow(to);
    countRow(xxh64(at, next - at));
    at = next;
  }
}

export function jsonLines(at: u32, end: u32, to: u32, limit: u32): i32 {
  return lines(at, end, to, limit, false);
}

export function csvLines(at: u32, end: u32, to: u32, limit: u32): i32 {
  return lines(at, end, to, limit, true);
}

function put(to: u32, byte: u8): u32 {
  store<u8>(to, byte);
  return to + 1;
}

function boolean(to: u32, at: u32): u32 {
  if (load<u8>(at)) {
    store<u32>(to, 0x65757274);
    return to + 4;
  }
  store<u64>(to, 0x65736c6166);
  return to + 5;
}

function time(to: u32, at: u32): u32 {
  const micros = readI64(at);
  return micros === NEVER || micros === ALWAYS ? forever(to, micros) : instant(to, micros);
}

function hasNumber(at: u32): bool {
  return (readI64(at) & 0x7ff0000000000000) !== 0x7ff0000000000000;
}

function jsonRow(to: u32): u32 {
  let column = columns;
  for (let i: u32 = 0; i < columnCount; i += 1) {
    to = copyLoose(to, keyPointer(column), keyLength(column));
    const length = fieldLength(i);
    const at = fieldAt(i);
    if (length < 0) {
      store<u32>(to, 0x6c6c756e);
      to += 4;
    } else {
      const type = columnType(column);
      if (type === STRING) {
        to = put(escapeText(put(to, 0x22), at, length), 0x22);
      } else if (type === DOCUMENT) {
        // The binary form of jsonb begins with a version byte.
        const version: u32 = length > 0 && load<u8>(at) === 1 ? 1 : 0;
        to = document(to, at + version, length - version);
      } else if (type === UUID) {
        to = put(uuid(put(to, 0x22), at), 0x22);
      } else if (type === TIMESTAMP) {
        to = put(time(put(to, 0x22), at), 0x22);
      } else if (type === BOOL) {
        to = boolean(to, at);
      } else if (type === STRINGS) {
        to = list(to, at);
      } else if (type === FLOAT64 && !hasNumber(at)) {
        to = put(number(put(to, 0x22), at, type), 0x22);
      } else {
        to = number(to, at, type);
      }
    }
    column += COLUMN;
  }
  store<u16>(to, 0x0a7d);
  return to + 2;
}

function csvRow(to: u32): u32 {
  let column = columns;
  for (let i: u32 = 0; i < columnCount; i += 1) {
    if (i > 0) to = put(to, 0x2c);
    const length = fieldLength(i);
    if (length >= 0) {
      const at = fieldAt(i);
      const type = columnType(column);
      if (type === STRING) {
        to = csvText(to, at, length);
      } else if (type === DOCUMENT) {
        const version: u32 = length > 0 && load<u8>(at) === 1 ? 1 : 0;
        to = csvText(to, at + version, length - version);
      } else if (type === UUID) {
        to = uuid(to, at);
      } else if (type === TIMESTAMP) {
        to = time(to, at);
      } else if (type === BOOL) {
        to = boolean(to, at);
      } else if (type === STRINGS) {
        // The JSON is written behind the area that the quoted text can reach.
        const aside = to + 14 * length + 32;
        to = csvText(to, aside, list(aside, at) - aside);
      } else {
        to = number(to, at, type);
      }
    }
    column += COLUMN;
  }
  store<u16>(to, 0x0a0d);
  return to + 2;
}

/** Writes a text as CSV (RFC 4180). An empty text is quoted, to distinguish it from null. */
function csvText(to: u32, at: u32, length: u32): u32 {
  if (length > 0 && !needsQuotes(at, length)) {
    for (let i: u32 = 0; i < length; i += 16) v128.store(to + i, v128.load(at + i));
    return to + length;
  }
  to = put(to, 0x22);
  const end = at + length;
  while (at < end) {
    const word = v128.load(at);
    v128.store(to, word);
    const quotes = i8x16.bitmask(v128.eq<u8>(word, i8x16.splat(0x22)));
    const step = min<u32>(end - at, quotes === 0 ? 16 : <u32>ctz(quotes));
    at += step;
    to += step;
    if (at < end && step < 16) {
      store<u16>(to, 0x2222);
      at += 1;
      to += 2;
    }
  }
  return put(to, 0x22);
}

function needsQuotes(at: u32, length: u32): bool {
  const end = at + length;
  while (at < end) {
    const word = v128.load(at);
    const found = v128.or(
      v128.or(v128.eq<u8>(word, i8x16.splat(0x22)), v128.eq<u8>(word, i8x16.splat(0x2c))),
      v128.or(v128.eq<u8>(word, i8x16.splat(0x0a)), v128.eq<u8>(word, i8x16.splat(0x0d))),
    );
    const mask = i8x16.bitmask(found);
    if (mask !== 0 && at + <u32>ctz(mask) < end) return true;
    at += 16;
  }
  return false;
}
