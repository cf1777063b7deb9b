// Prints access to JSON documents. Keys are parameters. The value is text, unless JSON is asked for.
import type { Span } from '../ast/index.ts';
import { coerced } from './coerce.ts';
import { fault, quote } from './errors.ts';
import type { Place, Printer } from './printer.ts';
import { type Sql, sql } from './sql.ts';
import type { Value } from './types.ts';

const MAX_KEY_LENGTH = 1_000;

function keyParameter(printer: Printer, key: string, span?: Span): Sql {
  if (key.length > MAX_KEY_LENGTH || key.includes('\0') || !key.isWellFormed()) {
    throw fault(`${quote(key.replaceAll('\0', ''))} cannot be the name of a property`, span);
  }
  return printer.parameters.add('text', key);
}

/** Prints `properties.a.b` as text. It is NULL for a missing value or a JSON null. */
export function jsonField(printer: Printer, document: Sql, keys: string[], span?: Span): Value {
  let path = document;
  for (const key of keys.slice(0, -1)) path = sql`${path} -> ${keyParameter(printer, key, span)}`;
  const last = keyParameter(printer, keys.at(-1) as string, span);
  return {
    sql: sql`(${path} ->> ${last})`,
    type: 'string',
    loose: true,
    json: sql`(${path} -> ${last})`,
  };
}

/** Prints `document[key]`. A text is a key; a number is an element's index, from 1, or from the end if negative. */
export function jsonStep(place: Place, document: Value, key: Value, span?: Span): Value {
  const json = document.json ?? document.sql;
  if (typeof key.literal === 'string') return jsonField(place.printer, json, [key.literal], span);
  if (typeof key.literal === 'number') {
    if (key.literal === 0) throw fault('Array indexes start from 1', span);
    const index = coerced(place, key, 'int', span);
    const step = key.literal > 0 ? sql`hq.count_of(${index} - 1)` : sql`hq.count_of(${index})`;
    return {
      sql: sql`(${json} ->> ${step})`,
      type: 'string',
      loose: true,
      json: sql`(${json} -> ${step})`,
    };
  }
  const name = coerced(place, key, 'string', span);
  return { sql: sql`(${json} ->> ${name})`, type: 'string', loose: true, json: sql`(${json} -> ${name})` };
}
