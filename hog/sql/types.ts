// What an expression is, as far as printing needs to know.
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

export type Type = ScalarType | { array: Type } | { tuple: Type[] };

export interface Value {
  sql: Sql;
  type: Type;
  /** Text that was found in a JSON document: compared as what the other side is. */
  loose?: boolean;
  /** The same as a JSON value, where it came out of a JSON document. */
  json?: Sql;
  /** Set for literals: functions may need to know them while printing. */
  literal?: null | boolean | number | string;
  /** The members of a tuple that is written down. */
  items?: Value[];
  /** SQL never gives NULL for it. */
  certain?: boolean;
}

export const isArray = (type: Type): type is { array: Type } => typeof type === 'object' && 'array' in type;
export const isTuple = (type: Type): type is { tuple: Type[] } => typeof type === 'object' && 'tuple' in type;
export const isNumber = (type: Type): boolean => type === 'int' || type === 'float';

/** The type under ClickHouse's name, for messages and `toTypeName`. */
export function typeName(type: Type): string {
  if (isArray(type)) return `Array(${typeName(type.array)})`;
  if (isTuple(type)) return `Tuple(${type.tuple.map(typeName).join(', ')})`;
  return NAMES[type];
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
