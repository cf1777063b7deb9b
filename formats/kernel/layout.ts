import type { ColumnType } from '../columns.ts';

// The layout that formats/kernel/assembly/ and its host share.

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

/** The size of a column's description, in bytes. */
export const COLUMN_SIZE = 128;
/** The offsets in a column's description. Only Parquet uses those from `values` on. */
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

/** The distance from the smallest text of a column to the greatest, in bytes. */
export const BOUND_ROOM = 96;
/** The size of the table for `lz4` and `snappy`, in bytes. */
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
