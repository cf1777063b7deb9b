// Functions for JSON documents. A path consists of keys and element numbers. Numbers start at 1; negative ones count
// from the end.
import { typeOfName } from '../casts.ts';
import { coerced } from '../coerce.ts';
import { fault, unsupported } from '../errors.ts';
import { jsonField, MAX_KEY_LENGTH } from '../json-path.ts';
import { join, type Sql, sql } from '../sql.ts';
import type { Type, Value } from '../types.ts';
import { custom, type FunctionCall, type FunctionTable, literalText, MANY } from './spec.ts';

/** Prints the value at a path as jsonb. It is NULL if there is none. */
function at({ place, args, span }: FunctionCall, keys: Value[]): Sql {
  // In a document that is stored as text, keys are looked for before what is found becomes jsonb.
  const known = args[0]!.stored ? literalKeys(keys) : [];
  const value = known.length > 0 ? jsonField(place.printer, args[0]!, known, span) : args[0]!;
  const document = coerced(place, value, 'json', span);
  if (keys.length === known.length) return document;
  const steps = keys
    .slice(known.length)
    .map((key) =>
      key.type === 'int'
        ? sql`hq.json_index(${key.sql})`
        : sql`to_jsonb(${coerced(place, key, 'string', span)})`,
    );
  return sql`hq.json_at(${document}, array[${join(steps)}]::jsonb[])`;
}

/** The keys at the beginning of a path that are literals. */
function literalKeys(path: readonly Value[]): string[] {
  const end = path.findIndex(({ literal }) => typeof literal !== 'string' || literal.length > MAX_KEY_LENGTH);
  return path.slice(0, end === -1 ? path.length : end).map(({ literal }) => literal as string);
}

/**
 * Declares a function that extracts a value of one type. A missing or unsuitable value becomes the zero value of the
 * type.
 */
const extract = (type: Type, convert: (found: Sql) => Sql) =>
  custom(1, MANY, (call) => ({ sql: convert(at(call, call.args.slice(1))), type }));

/** Declares a function that makes a list of what it finds. */
const list = (make: (found: Sql) => Sql, type: Type = { array: 'string' }) =>
  custom(1, MANY, (call) => ({ sql: make(listed(call, at(call, call.args.slice(1)))), type, built: 1 }));

const listed = ({ place }: FunctionCall, found: Sql): Sql =>
  sql`hq.listed(${found}, ${place.printer.sizes.most()})`;

const AS: Readonly<Record<string, { type: Type; convert: (found: Sql) => Sql }>> = {
  string: { type: 'string', convert: (found) => sql`hq.json_string(${found})` },
  int: { type: 'int', convert: (found) => sql`hq.json_int(${found})` },
  float: { type: 'float', convert: (found) => sql`hq.json_float(${found})` },
  bool: { type: 'bool', convert: (found) => sql`hq.json_bool(${found})` },
};
/** The types of JSON whose values are taken as pairs of a type. Others are left out, as in ClickHouse. */
const PAIRS: Readonly<Record<string, Sql>> = {
  int: sql`'number'`,
  float: sql`'number'`,
  bool: sql`'boolean'`,
};
const RAW = (found: Sql): Sql => sql`coalesce(hq.compact_json(${found}), '')`;

/** Implements JSONExtract. Its last argument is the type: 'String', 'Nullable(Int64)', 'Array(String)'. */
const extractTyped = custom(2, MANY, (call) => {
  const name = literalText(call.args.at(-1), 'The type', call.span);
  const found = at(call, call.args.slice(1, -1));
  const list = /^\s*Array\s*\((.*)\)\s*$/i.exec(name);
  if (list) {
    const element = typeOfName(list[1] as string, call.span);
    const whole = listed(call, found);
    if (element === 'string') {
      return { sql: sql`hq.json_texts(${whole})`, type: { array: 'string' }, built: 1 };
    }
    if (element === 'int') return { sql: sql`hq.json_ints(${whole})`, type: { array: 'int' }, built: 1 };
    if (element === 'float')
      return { sql: sql`hq.json_floats(${whole})`, type: { array: 'float' }, built: 1 };
    throw unsupported(`JSONExtract of ${name.slice(0, 60)}`, call.span);
  }
  const target = typeOfName(name, call.span);
  const made = Object.hasOwn(AS, target) ? AS[target] : undefined;
  if (!made) throw unsupported(`JSONExtract of ${name.slice(0, 60)}`, call.span);
  if (!/^\s*nullable/i.test(name)) return { sql: made.convert(found), type: made.type };
  const fits = { string: sql`string`, int: sql`number`, float: sql`number`, bool: sql`boolean` }[
    target as 'string'
  ];
  return { sql: sql`hq.json_${fits}_or_null(${found})`, type: target === 'int' ? 'float' : made.type };
});

const TYPE_NAMES = sql`hq.json_type`;

export const JSONS: FunctionTable = {
  JSONExtractString: extract(AS.string!.type, AS.string!.convert),
  JSONExtractInt: extract('int', AS.int!.convert),
  JSONExtractUInt: extract('int', (found) => sql`greatest(hq.json_int(${found}), 0)`),
  JSONExtractFloat: extract('float', AS.float!.convert),
  JSONExtractBool: extract('bool', AS.bool!.convert),
  JSONExtractRaw: extract('string', RAW),
  JSONExtract: extractTyped,
  JSONExtractArrayRaw: list((found) => sql`hq.json_array_raw(${found})`),
  JSONExtractKeys: list((found) => sql`hq.json_keys(${found})`),
  JSONExtractKeysAndValues: custom(2, MANY, (call) => {
    const name = literalText(call.args.at(-1), 'The type', call.span);
    const target = typeOfName(name, call.span);
    const found = listed(call, at(call, call.args.slice(1, -1)));
    if (target === 'string') return { sql: sql`hq.json_pairs(${found})`, type: 'json', built: 1 };
    const kind = Object.hasOwn(PAIRS, target) ? PAIRS[target] : undefined;
    if (!kind) throw unsupported(`Values of ${name.slice(0, 60)}`, call.span);
    const value = AS[target]!.convert(sql`v`);
    return {
      sql: sql`(select coalesce(jsonb_agg(jsonb_build_array(k, ${value}) order by n), '[]')
        from jsonb_each(case when jsonb_typeof(${found}) = 'object' then ${found} end) with ordinality as e(k, v, n)
        where jsonb_typeof(v) = ${kind})`,
      type: 'json',
      built: 1,
    };
  }),
  JSONExtractKeysAndValuesRaw: list((found) => sql`hq.json_pairs_raw(${found})`, 'json'),
  JSONHas: custom(1, MANY, (call) => ({
    sql: sql`(${at(call, call.args.slice(1))} is not null)`,
    type: 'bool',
    certain: true,
  })),
  JSONLength: extract('int', (found) => sql`hq.json_length(${found})`),
  JSONArrayLength: extract('int', (found) => sql`hq.json_length(${found})`),
  JSONType: extract('string', (found) => sql`${TYPE_NAMES}(${found})`),
  isValidJSON: custom(1, 1, ({ place, args, span }) => {
    const [value] = args as [Value];
    if (value.type === 'json') return { sql: sql`(${value.sql} is not null)`, type: 'bool' };
    return { sql: sql`(${coerced(place, value, 'string', span)} is json)`, type: 'bool' };
  }),
  JSON_VALUE: custom(2, 2, (call) => {
    const path = literalText(call.args[1], 'The path', call.span);
    const keys = pathKeys(path);
    if (!keys) throw fault("A path looks like '$.a.b[0]'", call.span);
    const { parameters } = call.place.printer;
    const steps = keys.map((key) =>
      typeof key === 'number'
        ? sql`hq.json_index(${parameters.add('bigint', String(key + 1))})`
        : sql`to_jsonb(${parameters.add('text', key)})`,
    );
    const document = coerced(call.place, call.args[0]!, 'json', call.span);
    return {
      sql: sql`hq.json_scalar(hq.json_at(${document}, array[${join(steps)}]::jsonb[]))`,
      type: 'string',
    };
  }),
};

/** Splits a path such as `$.a."b c"[0]` into its keys. Returns null if it is not valid. */
function pathKeys(path: string): (string | number)[] | null {
  const keys: (string | number)[] = [];
  let rest = path.trim();
  if (!rest.startsWith('$')) return null;
  rest = rest.slice(1);
  while (rest !== '') {
    const step = /^(?:\.([A-Za-z_$][\w$]*)|\."([^"]*)"|\[(\d{1,9})\]|\['([^']*)'\])/.exec(rest);
    if (!step) return null;
    keys.push(step[3] === undefined ? ((step[1] ?? step[2] ?? step[4]) as string) : Number(step[3]));
    rest = rest.slice(step[0].length);
  }
  return keys;
}
