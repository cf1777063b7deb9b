import type { ColumnType } from '../columns.ts';

// What formats/kernel/assembly/ and its host agree on.

export const TYPES: Record<ColumnType, number> = {
  string: 0,
  json: 1,
  uuid: 2,
  int32: 3,
  int64: 4,
  float64: 5,
  bool: 6,
  timestamp: 7,
  strings: 8,
};

/** Bytes of a column's description. */
export const COLUMN_SIZE = 128;
/** Offsets in it; from `values` on for Parquet only. */
export const COLUMN = {
  type: 0,
  nullable: 4,
  key: 8,
  keyLength: 12,
  values: 16,
  used: 20,
  room: 24,
  definitions: 28,
  repetitions: 32,
  levels: 36,
  levelRoom: 40,
  nulls: 44,
  hasDictionary: 48,
  table: 52,
  tableMask: 56,
  entries: 60,
  entriesUsed: 64,
  entriesRoom: 68,
  entryCount: 72,
  entryLimit: 76,
  offsets: 80,
  bounded: 84,
  minimum: 88,
  maximum: 96,
  boundTexts: 104,
  cut: 108,
} as const;

/** From the least text of a column to the greatest. */
export const BOUND_ROOM = 96;
/** Bytes of the table that `lz4` and `snappy` need. */
export const LZ_TABLE_SIZE = 65_536;

export const STATUS = { more: 1, end: 2, fault: 3, reject: 4, full: 5, dictionary: 6, rows: 7 } as const;
export const REASON = {
  fieldCount: 1,
  fieldLength: 2,
  fieldWidth: 3,
  nullValue: 4,
  nestedList: 5,
  brokenList: 6,
} as const;
