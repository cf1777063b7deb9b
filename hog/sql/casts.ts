import type { Span } from '../ast/index.ts';
import { coerce, type Kind } from './coerce.ts';
import { fault, quote, suggestion } from './errors.ts';
import type { Place } from './printer.ts';
import { sql } from './sql.ts';
import { isSameType, type Value } from './types.ts';
import { zonedType } from './zones.ts';

/** The type names of ClickHouse and SQL that CAST and JSONExtract accept. */
const TYPES: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ...['string', 'varchar', 'text', 'char', 'fixedstring'].map((name): [string, Kind] => [name, 'string']),
  ...[8, 16, 32, 64, 128, 256].flatMap((bits): [string, Kind][] => [
    [`int${bits}`, 'int'],
    [`uint${bits}`, 'int'],
  ]),
  ...['int', 'integer', 'bigint', 'smallint', 'tinyint'].map((name): [string, Kind] => [name, 'int']),
  ...['float', 'float32', 'float64', 'double', 'real', 'decimal', 'numeric'].map((name): [string, Kind] => [
    name,
    'float',
  ]),
  ...['bool', 'boolean'].map((name): [string, Kind] => [name, 'bool']),
  ...['datetime', 'datetime64', 'timestamp', 'timestamptz'].map((name): [string, Kind] => [name, 'datetime']),
  ...['date', 'date32'].map((name): [string, Kind] => [name, 'date']),
  ['uuid', 'uuid'],
  ...['json', 'jsonb'].map((name): [string, Kind] => [name, 'json']),
]);

/** `DateTime('Europe/Berlin')` and `DateTime64(3, 'Europe/Berlin')`: a time with a zone. */
const WITH_ZONE = /^datetime(?:64\s*\(\s*\d+\s*,|\s*\()\s*'([^']*)'\s*\)$/i;

/** Returns the name inside of `Nullable(…)` and `LowCardinality(…)`. */
function unwrapped(name: string): string {
  const wrapped = /^(?:nullable|lowcardinality)\s*\((.*)\)$/i.exec(name.trim());
  return (wrapped?.[1] ?? name).trim();
}

/** Returns the type with a name. Ignores `Nullable(…)`, `LowCardinality(…)`, lengths and zones. */
export function typeOfName(name: string, span?: Span): Kind {
  const bare = unwrapped(name).toLowerCase();
  const type = TYPES.get(bare.replace(/\s*\(.*\)$/, ''));
  if (!type) throw fault(`Unknown type ${quote(name)}${suggestion(name, TYPES.keys())}`, span);
  return type;
}

/** Casts a value to a type. Yields NULL if the value cannot be converted. */
export function castTo(place: Place, value: Value, name: string, span?: Span): Value {
  const zone = WITH_ZONE.exec(unwrapped(name))?.[1];
  const target = zone === undefined ? typeOfName(name, span) : zonedType(place.printer, zone, span);
  const made = coerce(place, value, target, span);
  // The parentheses mark the result as no longer a bare literal.
  return { sql: isSameType(made.type, value.type) ? sql`(${made.sql})` : made.sql, type: made.type };
}
