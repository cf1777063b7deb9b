import type { Span } from '../ast/index.ts';
import { coerce, type Target } from './coerce.ts';
import { fault, quote, suggestion } from './errors.ts';
import type { Place } from './printer.ts';
import { sql } from './sql.ts';
import type { Value } from './types.ts';

/** The type names of ClickHouse and SQL that CAST and JSONExtract accept. */
const TYPES: ReadonlyMap<string, Target> = new Map<string, Target>([
  ...['string', 'varchar', 'text', 'char', 'fixedstring'].map((name): [string, Target] => [name, 'string']),
  ...[8, 16, 32, 64, 128, 256].flatMap((bits): [string, Target][] => [
    [`int${bits}`, 'int'],
    [`uint${bits}`, 'int'],
  ]),
  ...['int', 'integer', 'bigint', 'smallint', 'tinyint'].map((name): [string, Target] => [name, 'int']),
  ...['float', 'float32', 'float64', 'double', 'real', 'decimal', 'numeric'].map((name): [string, Target] => [
    name,
    'float',
  ]),
  ...['bool', 'boolean'].map((name): [string, Target] => [name, 'bool']),
  ...['datetime', 'datetime64', 'timestamp', 'timestamptz'].map((name): [string, Target] => [
    name,
    'datetime',
  ]),
  ...['date', 'date32'].map((name): [string, Target] => [name, 'date']),
  ['uuid', 'uuid'],
  ...['json', 'jsonb'].map((name): [string, Target] => [name, 'json']),
]);

/** Returns the type with a name. Ignores `Nullable(…)`, `LowCardinality(…)` and lengths. */
export function typeOfName(name: string, span?: Span): Target {
  let bare = name.trim().toLowerCase();
  const wrapped = /^(?:nullable|lowcardinality)\s*\((.*)\)$/.exec(bare);
  if (wrapped) bare = (wrapped[1] as string).trim();
  const type = TYPES.get(bare.replace(/\s*\(.*\)$/, ''));
  if (!type) throw fault(`Unknown type ${quote(name)}${suggestion(name, TYPES.keys())}`, span);
  return type;
}

/** Casts a value to a type. Yields NULL if the value cannot be converted. */
export function castTo(place: Place, value: Value, name: string, span?: Span): Value {
  const target = typeOfName(name, span);
  const made = coerce(place, value, target, span);
  // The parentheses mark the result as no longer a bare literal.
  return { sql: made.type === value.type ? sql`(${made.sql})` : made.sql, type: made.type };
}
