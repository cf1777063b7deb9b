import { bound, boundText } from './bounds';
import { isText, place } from './dictionary';
import { xxh64 } from './hash';
import {
  BOOL,
  COLUMN,
  columnNullable,
  columnType,
  copyLoose,
  DICTIONARY,
  DOCUMENT,
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
  DEFINITIONS,
  FOUND,
  HAS_DICTIONARY,
  LEVEL_ROOM,
  LEVELS,
  NULLS,
  REPETITIONS,
  ROOM,
  USED,
  VALUES,
} from './page-layout';
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

const EPOCH: i64 = 946_684_800_000_000;

/** How many levels a row that did not fit has in the column. `needed` is its number of bytes. */
export let neededLevels: u32 = 0;

/** Memory for a value while it is converted. */
let aside: u32 = 0;

export function preparePages(scratch: u32): void {
  aside = scratch;
}

/** Returns microseconds since 1970. `infinity` and instants that are too late become the largest value. */
function sinceEpoch(at: u32): i64 {
  const micros = readI64(at);
  if (micros === NEVER) return i64.MIN_VALUE + 1;
  return micros > ALWAYS - EPOCH ? ALWAYS : micros + EPOCH;
}

/** Writes a fixed-width number in little-endian order. Returns its size. */
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

/** Encodes a value for Parquet. Returns where its bytes are, and sets `valueLength` to their number. */
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

/** Checks whether the row fits into the pages, and adds its new values to the dictionaries. Returns 0 if it fits. */
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

/** Adds at most `limit` complete rows to the pages. Sets `position` to where it stopped. */
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
