// Prints access to JSON documents. Keys are parameters. The value is text, unless JSON is asked for.
import type { Span } from '../ast/index.ts';
import { coerced } from './coerce.ts';
import { elementStep, keyStep, textInside } from './documents.ts';
import { fault, quote } from './errors.ts';
import type { Place, Printer } from './printer.ts';
import { type Sql, sql } from './sql.ts';
import type { Value } from './types.ts';

export const MAX_KEY_LENGTH = 1_000;

function keyParameter(printer: Printer, key: string, span?: Span): Sql {
  if (key.length > MAX_KEY_LENGTH || key.includes('\0') || !key.isWellFormed()) {
    throw fault(`${quote(key.replaceAll('\0', ''))} cannot be the name of a property`, span);
  }
  return printer.parameters.add('text', key);
}

/** Prints `properties.a.b` as text. It is NULL for a missing value or a JSON null. */
export function jsonField(printer: Printer, document: Value, keys: string[], span?: Span): Value {
  const names = keys.map((key) => keyParameter(printer, key, span));
  let path = document.json ?? document.sql;
  for (const name of names.slice(0, -1)) path = sql`${path} -> ${name}`;
  return step(printer, { document, path, last: names.at(-1) as Sql, steps: names.map(keyStep) });
}

/** Prints the last step of a path. `steps` are all of them, for a document that is stored as text. */
function step(
  printer: Printer,
  { document, path, last, steps }: { document: Value; path: Sql; last: Sql; steps: Sql[] },
): Value {
  const text = sql`(${path} ->> ${last})`;
  const found: Value = { sql: text, type: 'string', loose: true, json: sql`(${path} -> ${last})`, read: 1 };
  if (!document.stored) return found;
  const stored = { ...document.stored, steps: [...document.stored.steps, ...steps] };
  return { ...found, sql: textInside(printer, stored, text), stored };
}

/** Prints `document[key]`. A text is a key; a number is an element's index, from 1, or from the end if negative. */
export function jsonStep(place: Place, document: Value, key: Value, span?: Span): Value {
  const { printer } = place;
  const path = document.json ?? document.sql;
  if (typeof key.literal === 'string') return jsonField(printer, document, [key.literal], span);
  if (typeof key.literal === 'number') {
    if (key.literal === 0) throw fault('Array indexes start from 1', span);
    const index = coerced(place, key, 'int', span);
    const last = key.literal > 0 ? sql`hq.count_of(${index} - 1)` : sql`hq.count_of(${index})`;
    return step(printer, { document, path, last, steps: [elementStep(last)] });
  }
  const name = coerced(place, key, 'string', span);
  return step(printer, { document, path, last: name, steps: [keyStep(name)] });
}
