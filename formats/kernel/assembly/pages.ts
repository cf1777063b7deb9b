import { xxh64 } from './hash';
import {
  BOOL,
  COLUMN,
  columnNullable,
  columnType,
  copyLoose,
  DICTIONARY,
  DOCUMENT,
  FLOAT64,
  FULL,
  INT32,
  ROWS,
  readI32,
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
  listSize,
  next,
  setFaultColumn,
  setNeeded,
  setPosition,
  walk,
} from './row';
import { ALWAYS, NEVER, uuid } from './text';

// What a column's description holds for Parquet, after its first 16 bytes.
const VALUES: usize = 16; // the page's values, encoded plainly, or 4 bytes with each one's place in the dictionary
const USED: usize = 20;
const ROOM: usize = 24;
const DEFINITIONS: usize = 28; // a byte for each level
const REPETITIONS: usize = 32;
const LEVELS: usize = 36;
const LEVEL_ROOM: usize = 40;
const NULLS: usize = 44; // levels without a value
const HAS_DICTIONARY: usize = 48;
const TABLE: usize = 52; // 8 bytes a slot: half a hash, and the entry's number from 1 on
const TABLE_MASK: usize = 56;
const ENTRIES: usize = 60;
const ENTRIES_USED: usize = 64;
const ENTRIES_ROOM: usize = 68;
const ENTRY_COUNT: usize = 72;
const ENTRY_LIMIT: usize = 76;
const OFFSETS: usize = 80;
const BOUNDED: usize = 84; // 0: no value yet
const MINIMUM: usize = 88; // a number; or the length of the text
const MAXIMUM: usize = 96;
const BOUND_TEXTS: usize = 104; // the least text, and BOUND_ROOM bytes later the greatest
const CUT: usize = 108; // whether the greatest text goes on
const FOUND: usize = 112; // the current row's place in the dictionary

/** So much of a text goes into the statistics. */
const BOUND_LENGTH: u32 = 64;
const BOUND_ROOM: u32 = 96;
const EPOCH: i64 = 946_684_800_000_000;

/** After a row did not fit: how many levels it has in the column; `needed` says how many bytes. */
export let neededLevels: u32 = 0;

/** Room for a value on its way. */
let aside: u32 = 0;

export function preparePages(scratch: u32): void {
  aside = scratch;
}

function isText(type: u32): bool {
  return type <= UUID;
}

/** -1, 0 or 1: how two byte strings compare. */
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

function boundText(column: u32, at: u32, length: u32): void {
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
  // What is no number cannot be compared, and stays out of the statistics.
  if (!(value >= -Infinity)) return;
  const first = load<u32>(column, BOUNDED) === 0;
  if (first || value < load<f64>(column, MINIMUM)) store<f64>(column, value, MINIMUM);
  if (first || value > load<f64>(column, MAXIMUM)) store<f64>(column, value, MAXIMUM);
  store<u32>(column, 1, BOUNDED);
}

/** Microseconds since 1970; what is later than those can say, and for ever, is the last of them. */
function sinceEpoch(at: u32): i64 {
  const micros = readI64(at);
  if (micros === NEVER) return i64.MIN_VALUE + 1;
  return micros > ALWAYS - EPOCH ? ALWAYS : micros + EPOCH;
}

/** Writes a fixed-width number, little-endian, and returns its size. */
function fixed(to: u32, at: u32, type: u32): u32 {
  if (type === INT32) {
    store<i32>(to, readI32(at));
    return 4;
  }
  if (type === BOOL) {
    store<u8>(to, load<u8>(at) !== 0);
    return 1;
  }
  store<i64>(to, type === TIMESTAMP ? sinceEpoch(at) : readI64(at));
  return 8;
}

function bound(column: u32, type: u32, at: u32, length: u32): void {
  if (type === STRING || type === UUID) boundText(column, at, length);
  else if (type === FLOAT64) boundReal(column, load<f64>(at));
  else if (type === INT32) boundInteger(column, load<i32>(at));
  else if (type === BOOL) boundInteger(column, load<u8>(at));
  else if (type !== DOCUMENT) boundInteger(column, load<i64>(at));
}

/** Where the value's bytes are as Parquet has them; `valueLength` says how many. */
let valueLength: u32 = 0;
function encoded(type: u32, at: u32, length: u32): u32 {
  if (type === STRING) {
    valueLength = length;
    return at;
  }
  if (type === DOCUMENT) {
    const version: u32 = length > 0 && load<u8>(at) === 1 ? 1 : 0;
    valueLength = length - version;
    return at + version;
  }
  valueLength = type === UUID ? uuid(aside, at) - aside : fixed(aside, at, type);
  return aside;
}

/** The value's place in the dictionary, where it is added if it is new; -1 if there is no room. */
function place(column: u32, type: u32, at: u32, length: u32): i32 {
  const hash = xxh64(at, length);
  const short = hash >> 32;
  const mask = load<u32>(column, TABLE_MASK);
  const table = load<u32>(column, TABLE);
  const entries = load<u32>(column, ENTRIES);
  const offsets = load<u32>(column, OFFSETS);
  const prefix: u32 = isText(type) ? 4 : 0;
  let slot = <u32>hash & mask;
  while (true) {
    const found = load<u64>(table + (slot << 3));
    if (found === 0) break;
    if (found >> 32 === short) {
      const index = <u32>found - 1;
      const entry = entries + load<u32>(offsets + (index << 2));
      const entryLength = prefix ? load<u32>(entry) : length;
      if (entryLength === length && memory.compare(entry + prefix, at, length) === 0) return index;
    }
    slot = (slot + 1) & mask;
  }
  const count = load<u32>(column, ENTRY_COUNT);
  const used = load<u32>(column, ENTRIES_USED);
  const room = load<u32>(column, ENTRIES_ROOM);
  if (count === load<u32>(column, ENTRY_LIMIT) || length > room || used + length + 4 > room) return -1;
  store<u64>(table + (slot << 3), (short << 32) | (count + 1));
  store<u32>(offsets + (count << 2), used);
  if (prefix) store<u32>(entries + used, length);
  memory.copy(entries + used + prefix, at, length);
  store<u32>(column, used + prefix + length, ENTRIES_USED);
  store<u32>(column, count + 1, ENTRY_COUNT);
  bound(column, type, at, length);
  return count;
}

/** Fills a table of another size with the entries there are. */
export function rehash(column: u32): void {
  const mask = load<u32>(column, TABLE_MASK);
  const table = load<u32>(column, TABLE);
  const entries = load<u32>(column, ENTRIES);
  const offsets = load<u32>(column, OFFSETS);
  const count = load<u32>(column, ENTRY_COUNT);
  const used = load<u32>(column, ENTRIES_USED);
  const prefix: u32 = isText(columnType(column)) ? 4 : 0;
  memory.fill(table, 0, (mask + 1) << 3);
  for (let i: u32 = 0; i < count; i += 1) {
    const from = load<u32>(offsets + (i << 2));
    const to = i + 1 < count ? load<u32>(offsets + ((i + 1) << 2)) : used;
    const hash = xxh64(entries + from + prefix, to - from - prefix);
    let slot = <u32>hash & mask;
    while (load<u64>(table + (slot << 3)) !== 0) slot = (slot + 1) & mask;
    store<u64>(table + (slot << 3), ((hash >> 32) << 32) | (i + 1));
  }
}

/** Whether the row fits into the pages. Its new values are in the dictionaries afterwards. */
function prepareRow(): i32 {
  let column = columns;
  for (let i: u32 = 0; i < columnCount; i += 1) {
    const length = fieldLength(i);
    const type = columnType(column);
    let levels: u32 = 1;
    let bytes: u64 = 0;
    if (length >= 0) {
      if (type === STRINGS) {
        levels = max<u32>(1, listSize(fieldAt(i)));
        bytes = length;
      } else if (load<u32>(column, HAS_DICTIONARY)) {
        const at = encoded(type, fieldAt(i), length);
        const found = place(column, type, at, valueLength);
        if (found < 0) {
          setNeeded(valueLength + 4);
          setFaultColumn(i);
          return DICTIONARY;
        }
        store<u32>(column, found, FOUND);
        bytes = 4;
      } else {
        bytes = <u64>(type === UUID ? 36 : length) + 4;
      }
    }
    if (
      bytes + load<u32>(column, USED) > load<u32>(column, ROOM) ||
      <u64>levels + load<u32>(column, LEVELS) > load<u32>(column, LEVEL_ROOM)
    ) {
      setNeeded(<u32>bytes);
      neededLevels = levels;
      setFaultColumn(i);
      return FULL;
    }
    column += COLUMN;
  }
  return 0;
}

function addValue(column: u32, type: u32, at: u32, length: u32): void {
  const used = load<u32>(column, USED);
  const to = load<u32>(column, VALUES) + used;
  if (load<u32>(column, HAS_DICTIONARY)) {
    store<u32>(to, load<u32>(column, FOUND));
    store<u32>(column, used + 4, USED);
    return;
  }
  if (!isText(type)) {
    const size = fixed(to, at, type);
    bound(column, type, to, size);
    store<u32>(column, used + size, USED);
    return;
  }
  let size = length;
  if (type === UUID) {
    size = uuid(to + 4, at) - to - 4;
  } else {
    const version: u32 = type === DOCUMENT && length > 0 && load<u8>(at) === 1 ? 1 : 0;
    size -= version;
    copyLoose(to + 4, at + version, size);
  }
  store<u32>(to, size);
  if (type !== DOCUMENT) boundText(column, to + 4, size);
  store<u32>(column, used + 4 + size, USED);
}

function addList(column: u32, at: u32, length: i32): void {
  const definitions = load<u32>(column, DEFINITIONS);
  const repetitions = load<u32>(column, REPETITIONS);
  let level = load<u32>(column, LEVELS);
  const empty: u8 = columnNullable(column) ? 1 : 0;
  const count = length < 0 ? 0 : listSize(at);
  if (count === 0) {
    store<u8>(definitions + level, length < 0 ? 0 : empty);
    store<u8>(repetitions + level, 0);
    store<u32>(column, level + 1, LEVELS);
    store<u32>(column, load<u32>(column, NULLS) + 1, NULLS);
    return;
  }
  let used = load<u32>(column, USED);
  let nulls = load<u32>(column, NULLS);
  const values = load<u32>(column, VALUES);
  at += 20;
  for (let i = 0; i < count; i += 1) {
    const size = readI32(at);
    at += 4;
    store<u8>(repetitions + level, u8(i > 0));
    store<u8>(definitions + level, size < 0 ? empty + 1 : empty + 2);
    level += 1;
    if (size < 0) {
      nulls += 1;
      continue;
    }
    store<u32>(values + used, size);
    memory.copy(values + used + 4, at, size);
    boundText(column, at, size);
    used += 4 + size;
    at += size;
  }
  store<u32>(column, level, LEVELS);
  store<u32>(column, used, USED);
  store<u32>(column, nulls, NULLS);
}

/** Adds whole rows to the pages, `limit` at most; `position` is where it stopped. */
export function addRows(at: u32, end: u32, limit: u32): i32 {
  while (true) {
    let status = walk(at, end);
    if (status === 0) status = limit === 0 ? ROWS : prepareRow();
    if (status !== 0) {
      setPosition(at);
      return status;
    }
    let column = columns;
    for (let i: u32 = 0; i < columnCount; i += 1) {
      const type = columnType(column);
      const length = fieldLength(i);
      if (type === STRINGS) {
        addList(column, fieldAt(i), length);
      } else {
        const level = load<u32>(column, LEVELS);
        if (columnNullable(column)) store<u8>(load<u32>(column, DEFINITIONS) + level, u8(length >= 0));
        store<u32>(column, level + 1, LEVELS);
        if (length < 0) store<u32>(column, load<u32>(column, NULLS) + 1, NULLS);
        else addValue(column, type, fieldAt(i), length);
      }
      column += COLUMN;
    }
    countRow(xxh64(at, next - at));
    limit -= 1;
    at = next;
  }
}

/** How many bytes the page's values have without the dictionary. */
export function plainSize(column: u32): u64 {
  const values = load<u32>(column, VALUES);
  const offsets = load<u32>(column, OFFSETS);
  const count = load<u32>(column, ENTRY_COUNT);
  let total: u64 = 0;
  for (let i: u32 = 0; i < load<u32>(column, USED); i += 4) {
    const index = load<u32>(values + i);
    const end = index + 1 < count ? load<u32>(offsets + ((index + 1) << 2)) : load<u32>(column, ENTRIES_USED);
    total += end - load<u32>(offsets + (index << 2));
  }
  return total;
}

/** Writes the page's values without the dictionary; returns where they end. */
export function writePlain(column: u32, to: u32): u32 {
  const values = load<u32>(column, VALUES);
  const offsets = load<u32>(column, OFFSETS);
  const entries = load<u32>(column, ENTRIES);
  const count = load<u32>(column, ENTRY_COUNT);
  for (let i: u32 = 0; i < load<u32>(column, USED); i += 4) {
    const index = load<u32>(values + i);
    const from = load<u32>(offsets + (index << 2));
    const end = index + 1 < count ? load<u32>(offsets + ((index + 1) << 2)) : load<u32>(column, ENTRIES_USED);
    memory.copy(to, entries + from, end - from);
    to += end - from;
  }
  return to;
}
