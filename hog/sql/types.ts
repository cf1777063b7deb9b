// Types and values of SQL expressions, as the printer needs them.
import type { Sql } from './sql.ts';

export type ScalarType =
  | 'string'
  | 'int'
  | 'float'
  | 'bool'
  | 'datetime'
  | 'date'
  | 'uuid'
  | 'json'
  | 'interval'
  | 'null';

/** The type of times with a zone of their own, which is the name of it. */
export interface Zoned {
  datetime: string;
}
/** The types of times. Without a zone of its own, a time is in the zone of the query. */
export type DateTime = 'datetime' | Zoned;

export type Type = ScalarType | Zoned | { array: Type } | { tuple: Type[] };

/** Where in a stored document a value is, so that it can be found again by a function. */
export interface Stored {
  /** The column. */
  root: Sql;
  /** The way to the value, as `keyStep` and `elementStep` of documents.ts print it. */
  steps: readonly Sql[];
}

export interface Value {
  sql: Sql;
  type: Type;
  /** True for text from a JSON document. It is compared in the type of the other side. */
  loose?: boolean;
  /** The value as JSON, if it comes from a JSON document. */
  json?: Sql;
  /** The value of a literal, for functions that need to know it while printing. */
  literal?: null | boolean | number | string;
  /** The members of a tuple literal. */
  items?: Value[];
  /** True if the SQL never yields NULL. */
  certain?: boolean;
  /** How many values of the largest size it can be; see `sizes.ts`. Without it, as many as its parts together. */
  built?: number;
  /** Prints a condition that is true where the value equals another one, and that an index can serve. */
  narrowed?: (value: Sql) => Sql;
  /** Where the value is, if it comes from a document that is stored as text. `json` is then how it is found. */
  stored?: Stored;
  /** How many values of documents it can have in it. Without it, as many as its parts together. */
  read?: number;
}

export const isArray = (type: Type): type is { array: Type } => typeof type === 'object' && 'array' in type;
export const isTuple = (type: Type): type is { tuple: Type[] } => typeof type === 'object' && 'tuple' in type;
export const isZoned = (type: Type): type is Zoned => typeof type === 'object' && 'datetime' in type;
export const isDateTime = (type: Type): type is DateTime => type === 'datetime' || isZoned(type);
export const isSameType = (left: Type, right: Type): boolean =>
  left === right || JSON.stringify(left) === JSON.stringify(right);
export const isNumber = (type: Type): boolean => type === 'int' || type === 'float';

/** Returns ClickHouse's name of a type, for messages and `toTypeName`. */
export function typeName(type: Type): string {
  if (isArray(type)) return `Array(${typeName(type.array)})`;
  if (isTuple(type)) return `Tuple(${type.tuple.map(typeName).join(', ')})`;
  return isZoned(type) ? `DateTime64(6, '${type.datetime}')` : NAMES[type];
}

const NAMES: Record<ScalarType, string> = {
  string: 'String',
  int: 'Int64',
  float: 'Float64',
  bool: 'Bool',
  datetime: "DateTime64(6, 'UTC')",
  date: 'Date',
  uuid: 'UUID',
  json: 'JSON',
  interval: 'Interval',
  null: 'Nullable(Nothing)',
};
