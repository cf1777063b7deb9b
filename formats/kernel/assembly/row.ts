import {
  BOOL,
  BROKEN_LIST,
  COLUMN,
  columnNullable,
  columnType,
  END,
  FAULT,
  FIELD_COUNT,
  FIELD_LENGTH,
  FIELD_WIDTH,
  FLOAT64,
  INT32,
  INT64,
  MORE,
  NESTED_LIST,
  NULL_VALUE,
  REJECT,
  readI32,
  STRINGS,
  TIMESTAMP,
  UUID,
} from './memory';

/**
 * Set by the host: the number of columns, the address of their descriptions, and memory for 8 bytes for each column.
 */
export let columnCount: u32 = 0;
export let columns: u32 = 0;
export let fields: u32 = 0;

/** The start of the next row, or of the faulty row. */
export let position: u32 = 0;
/** The least number of bytes of a row that is incomplete. */
export let needed: u32 = 0;
export let faultReason: i32 = 0;
export let faultColumn: i32 = 0;
export let faultValue: i32 = 0;
/** The number of encoded rows and the sum of their hashes. */
export let rows: u32 = 0;
export let hashSum: u64 = 0;

export function setColumns(count: u32, at: u32, fieldsAt: u32): void {
  columnCount = count;
  columns = at;
  fields = fieldsAt;
}

export function setPosition(at: u32): void {
  position = at;
}

export function setNeeded(bytes: u32): void {
  needed = bytes;
}

export function setFaultColumn(column: i32): void {
  faultColumn = column;
}

export function countRow(hash: u64): void {
  rows += 1;
  hashSum += hash;
}

export function addHash(hash: u64): void {
  hashSum += hash;
}

/** The end of the current row. */
export let next: u32 = 0;

export function fieldAt(column: u32): u32 {
  return load<u32>(fields + (column << 3));
}
/** Returns the length of a field, or -1 for null. */
export function fieldLength(column: u32): i32 {
  return load<i32>(fields + (column << 3), 4);
}

function fault(status: i32, reason: i32, column: i32, value: i32): i32 {
  faultReason = reason;
  faultColumn = column;
  faultValue = value;
  return status;
}

function widthOf(type: u32): i32 {
  if (type < UUID) return 0;
  if (type === TIMESTAMP || type === INT64 || type === FLOAT64) return 8;
  if (type === UUID) return 16;
  if (type === INT32) return 4;
  if (type === BOOL) return 1;
  return 0;
}

/** Parses the row at `at`: finds its fields and its end, and checks it. Returns 0 if it is valid. */
export function walk(at: u32, end: u32): i32 {
  if (end - at < 2) {
    needed = 2;
    return MORE;
  }
  const count = <i32>bswap<i16>(load<i16>(at));
  if (count === -1) return END;
  if (<u32>count !== columnCount) return fault(FAULT, FIELD_COUNT, 0, count);
  let p = at + 2;
  let status = 0;
  let column = columns;
  let field = fields;
  for (let i: u32 = 0; i < columnCount; i += 1) {
    if (end - p < 4) {
      needed = p + 4 - at;
      return MORE;
    }
    const length = readI32(p);
    p += 4;
    store<u32>(field, p);
    store<i32>(field, length, 4);
    if (length < 0) {
      if (length !== -1) return fault(FAULT, FIELD_LENGTH, i, length);
      if (!columnNullable(column) && status === 0) status = fault(REJECT, NULL_VALUE, i, 0);
    } else {
      const type = columnType(column);
      const width = widthOf(type);
      if (width !== 0 && length !== width) return fault(FAULT, FIELD_WIDTH, i, length);
      if (end - p < <u32>length) {
        needed = p - at + length;
        return MORE;
      }
      if (type === STRINGS) {
        const reason = checkList(p, p + length);
        if (reason === BROKEN_LIST) return fault(FAULT, BROKEN_LIST, i, length);
        if (reason !== 0 && status === 0) status = fault(REJECT, reason, i, readI32(p));
      }
      p += length;
    }
    column += COLUMN;
    field += 8;
  }
  next = p;
  return status;
}

/** Checks that a value is an array of texts with at most one dimension. Returns 0, or the reason why it is not. */
function checkList(at: u32, end: u32): i32 {
  if (end - at < 12) return BROKEN_LIST;
  const dimensions = readI32(at);
  if (dimensions === 0) return end - at === 12 ? 0 : BROKEN_LIST;
  if (dimensions < 0) return BROKEN_LIST;
  if (dimensions > 1) return NESTED_LIST;
  if (end - at < 20) return BROKEN_LIST;
  const count = readI32(at + 12);
  at += 20;
  for (let i = 0; i < count; i += 1) {
    if (end - at < 4) return BROKEN_LIST;
    const length = readI32(at);
    at += 4;
    if (length < -1) return BROKEN_LIST;
    if (length > 0) {
      if (end - at < <u32>length) return BROKEN_LIST;
      at += length;
    }
  }
  return at === end ? 0 : BROKEN_LIST;
}

/** Returns the number of elements of a checked list. The first one begins 20 bytes after the start of the list. */
export function listSize(at: u32): i32 {
  return readI32(at) === 0 ? 0 : readI32(at + 12);
}
