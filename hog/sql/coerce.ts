// Converts values between types, by ClickHouse's rules where it has them. A text that cannot be converted becomes NULL.
import type { Span } from '../ast/index.ts';
import { binaryInside } from './documents.ts';
import { fault } from './errors.ts';
import { numberValue, timestampParameter } from './literals.ts';
import type { Place, Printer } from './printer.ts';
import { type Sql, sql } from './sql.ts';
import {
  isArray,
  isDateTime,
  isNumber,
  isTuple,
  isZoned,
  type Type,
  typeName,
  type Value,
  type Zoned,
} from './types.ts';
import { zoneOf } from './zones.ts';

export type Kind = 'string' | 'number' | 'int' | 'float' | 'bool' | 'datetime' | 'date' | 'uuid' | 'json';
export type Target = Kind | Zoned;

const isZonedTarget = (target: Target): target is Zoned => typeof target === 'object';
const kindOf = (target: Target): Kind => (isZonedTarget(target) ? 'datetime' : target);

/** Converts a value to a type. Refuses types that cannot be converted. A time keeps its zone, unless another one is asked for. */
export function coerce(place: Place, value: Value, target: Target, span?: Span): Value {
  const { printer } = place;
  // Event documents are stored as `json`, but functions take `jsonb`.
  if (target === 'json' && value.type === 'json' && value.json) {
    return { ...plain(value), sql: binary(printer, value, value.json) };
  }
  if (value.type === target || (target === 'number' && isNumber(value.type))) return plain(value);
  const kind = kindOf(target);
  if (kind === 'datetime' && isDateTime(value.type)) {
    return isZonedTarget(target) ? { ...plain(value), type: target } : plain(value);
  }
  if (value.type === 'null') return { sql: sql`null::${TYPE_SQL[kind]}`, type: targetType(target) };
  if (typeof value.literal === 'number' && (target === 'float' || target === 'number')) {
    return numberValue(printer, value.literal, true);
  }
  const zone = zoneOf(printer, isZonedTarget(target) ? target : value.type);
  const made = CONVERSIONS[kind](printer, value, zone);
  if (!made) throw fault(`A ${typeName(value.type)} cannot be used as ${kind}`, span);
  const result: Value = { sql: made, type: targetType(target) };
  if (target === 'string' && value.certain) result.certain = true;
  return result;
}

export const coerced = (place: Place, value: Value, target: Target, span?: Span): Sql =>
  coerce(place, value, target, span).sql;

const targetType = (target: Target): Type => (target === 'number' ? 'float' : target);

/** Returns the value without its link to a JSON document. */
const plain = ({ sql: text, type, certain, literal }: Value): Value => ({
  sql: text,
  type,
  ...(certain && { certain }),
  ...(literal !== undefined && { literal }),
});

const TYPE_SQL: Record<Kind, Sql> = {
  string: sql`text`,
  number: sql`float8`,
  int: sql`bigint`,
  float: sql`float8`,
  bool: sql`boolean`,
  datetime: sql`timestamptz`,
  date: sql`date`,
  uuid: sql`uuid`,
  json: sql`jsonb`,
};

/** Returns the Postgres name of a type. */
export function postgresType(type: Type): Sql {
  if (isArray(type)) return sql`${postgresType(type.array)}[]`;
  if (isTuple(type)) return sql`jsonb`;
  if (isZoned(type)) return TYPE_SQL.datetime;
  if (type === 'null') return sql`text`;
  return type === 'interval' ? sql`interval` : TYPE_SQL[type];
}

/** `zone` is that of the times which are read or made. */
type Conversion = (printer: Printer, value: Value, zone: Sql) => Sql | null;

function toText(printer: Printer, { sql: value, type }: Value, zone: Sql): Sql | null {
  if (isDateTime(type)) return sql`hq.datetime_text(${value}, ${zone})`;
  // Each level of texts in lists in texts doubles the backslashes.
  const { sizes } = printer;
  if (isArray(type)) return sql`hq.within(to_jsonb(${value})::text, 1, ${sizes.most()})`;
  if (isTuple(type)) return sql`hq.within((${value})::text, 1, ${sizes.most()})`;
  return sql`(${value})::text`;
}

function toFloat(_printer: Printer, { sql: value, type }: Value): Sql | null {
  if (isNumber(type)) return sql`(${value})::float8`;
  if (type === 'string') return sql`hq.to_float(${value})`;
  if (type === 'bool') return sql`(${value})::int::float8`;
  if (type === 'json') return sql`hq.to_float(${value} #>> '{}')`;
  if (isDateTime(type)) return sql`extract(epoch from ${value})::float8`;
  if (type === 'date') return sql`(${value} - date '1970-01-01')::float8`;
  return null;
}

function toInt(_printer: Printer, { sql: value, type }: Value): Sql | null {
  if (type === 'float') return sql`hq.float_to_int(${value})`;
  if (type === 'string') return sql`hq.to_int(${value})`;
  if (type === 'bool') return sql`(${value})::int::bigint`;
  if (type === 'json') return sql`hq.to_int(${value} #>> '{}')`;
  if (isDateTime(type)) return sql`floor(extract(epoch from ${value}))::bigint`;
  if (type === 'date') return sql`(${value} - date '1970-01-01')::bigint`;
  return null;
}

function toBool(_printer: Printer, { sql: value, type, literal }: Value): Sql | null {
  if (literal === 0 || literal === 1) return literal === 1 ? sql`true` : sql`false`;
  if (isNumber(type)) return sql`(${value} <> 0)`;
  if (type === 'string') return sql`hq.to_bool(${value})`;
  if (type === 'json') return sql`hq.to_bool(${value} #>> '{}')`;
  return null;
}

function toTime(printer: Printer, { sql: value, type, literal }: Value, zone: Sql): Sql | null {
  if (typeof literal === 'string') return timestampParameter(printer, literal, zone);
  if (type === 'string') return sql`hq.to_datetime(${value}, ${zone})`;
  if (type === 'date') return sql`((${value})::timestamp at time zone ${zone})`;
  if (isNumber(type)) return sql`hq.to_timestamp(${value}::float8)`;
  if (type === 'json') return sql`hq.to_datetime(${value} #>> '{}', ${zone})`;
  return null;
}

function toDate(_printer: Printer, { sql: value, type }: Value, zone: Sql): Sql | null {
  if (type === 'string') return sql`hq.to_date(${value}, ${zone})`;
  if (isDateTime(type)) return sql`(${value} at time zone ${zone})::date`;
  if (type === 'json') return sql`hq.to_date(${value} #>> '{}', ${zone})`;
  if (type === 'int') return sql`hq.int_to_date(${value}, ${zone})`;
  return null;
}

const binary = (printer: Printer, { stored }: Value, json: Sql): Sql =>
  stored ? binaryInside(printer, stored, json) : sql`(${json})::jsonb`;

function toJson(printer: Printer, value: Value): Sql | null {
  if (value.json) return binary(printer, value, value.json);
  // A number of two characters takes much more while it is read.
  if (value.type === 'string')
    return sql`hq.to_json(hq.document_text(${value.sql}, ${printer.sizes.most()}))`;
  return sql`to_jsonb(${value.sql})`;
}

const CONVERSIONS: Record<Kind, Conversion> = {
  string: toText,
  number: (printer, value) => (value.type === 'bool' ? toInt(printer, value) : toFloat(printer, value)),
  int: toInt,
  float: toFloat,
  bool: toBool,
  datetime: toTime,
  date: toDate,
  uuid: (_printer, { sql: value, type }) => (type === 'string' ? sql`hq.to_uuid(${value})` : null),
  json: toJson,
};
