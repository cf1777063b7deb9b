// How the values of a statement become JSON. Postgres writes it, so that nobody has to parse large documents again.
import { isArray, isDateTime, isTuple, isZoned, type Statement, type Type } from '../../hog/sql/index.ts';
import { databaseZone } from '../../values/zones.ts';
import { type CompiledQuery, MOST_BYTES, type OutputColumn } from '../rules/request.ts';

/** A query as a statement, before it is known what becomes of its values. */
export interface Selected extends Pick<CompiledQuery, 'columns' | 'page' | 'place' | 'hogql'> {
  statement: Statement;
}

/**
 * Wraps a statement so that each of its columns is a JSON text. Postgres adds up the sizes itself, before it writes any value: a
 * single row may be larger than the memory of this process.
 */
export function asJson({
  text,
  values,
  columns,
}: Statement): Pick<CompiledQuery, 'text' | 'values' | 'width'> {
  const names = columns.map((_, index) => `f${index + 1}`);
  const given = [...values];
  const parameter = (text: string) => `$${given.push(text)}::text`;
  const sizes = names.map((one) => `coalesce(octet_length(${one}::text), 4)`).join(' + ');
  const shown = columns.map(({ type }, index) => {
    const written = jsonOf(type, names[index] as string, parameter);
    return `case when total <= ${MOST_BYTES} then ${written} end`;
  });
  return {
    text:
      `select ${shown.join(', ')}, total::bigint from (` +
      `select *, sum(size) over (rows unbounded preceding) as total from (` +
      `select *, ${sizes} as size from (${text}) as x (${names.join(', ')}) offset 0) as sized) as summed`,
    values: given,
    width: columns.length,
  };
}

/** Prints a value as JSON text. NULL stays NULL. `parameter` adds a value to the statement. */
function jsonOf(type: Type, name: string, parameter: (text: string) => string): string {
  if (isZoned(type)) return `to_json(${shownTime(type, name, parameter)})::text`;
  if (isArray(type) && type.array === 'float') return `to_json(${finiteOnly(name)})::text`;
  if (typeof type === 'object' && isWritten(type)) {
    return `case when ${name} is not null then ${innerJson(type, `to_jsonb(${name})`, parameter)} end::text`;
  }
  switch (type) {
    case 'datetime':
      return `to_json(${time(name)})::text`;
    case 'date':
      return `to_json(to_char(${name}, 'YYYY-MM-DD'))::text`;
    // JSON has no such numbers.
    case 'float':
      return `to_json(case when ${name}::float8 not in ('NaN', 'Infinity', '-Infinity') then ${name} end)::text`;
    // A document is a text, as everywhere in HogQL. A client parses it if it needs to.
    case 'json':
      return `to_json(${name}::text)::text`;
    case 'interval':
    case 'null':
      return `to_json(${name}::text)::text`;
    default:
      return `to_json(${name})::text`;
  }
}

/** Prints an array of numbers without those that JSON does not have. */
const finiteOnly = (name: string): string =>
  ['NaN', 'Infinity', '-Infinity'].reduce(
    (list, one) => `array_replace(${list}, '${one}', null)`,
    `${name}::float8[]`,
  );

/** Returns whether Postgres by itself would write a value, or a part of it, in another way: times and numbers. */
const isWritten = (type: Type): boolean =>
  isArray(type)
    ? isWritten(type.array)
    : isTuple(type)
      ? type.tuple.some(isWritten)
      : type === 'float' || isDateTime(type);

/** Prints a part of an array or a tuple, which is jsonb, as JSON. It is written as it is outside of one. */
function innerJson(type: Type, part: string, parameter: (text: string) => string, level = 1): string {
  if (!isWritten(type)) return `${part}::json`;
  // What is no number in JSON is a text in jsonb.
  if (type === 'float') return `(case when jsonb_typeof(${part}) = 'number' then ${part} end)::json`;
  if (isTuple(type)) {
    const items = type.tuple.map((one, index) => innerJson(one, `(${part} -> ${index})`, parameter, level));
    return `json_build_array(${items.join(', ')})`;
  }
  if (!isArray(type)) return `to_json(${shownTime(type, `(${part} #>> '{}')::timestamptz`, parameter)})`;
  const element = innerJson(type.array, `v${level}`, parameter, level + 1);
  return `(select coalesce(json_agg(${element} order by n${level}), '[]')
    from jsonb_array_elements(nullif(${part}, 'null')) with ordinality as e${level}(v${level}, n${level}))`;
}

/** A time in its zone. */
const shownTime = (type: Type, name: string, parameter: (text: string) => string): string =>
  isZoned(type) && type.datetime !== 'UTC' ? local(name, parameter(databaseZone(type.datetime))) : time(name);

/** A time as the API writes it: in UTC, without a fraction of zero. */
const time = (name: string): string => clock(name, "'UTC'", `"Z"`);

const clock = (name: string, zone: string, end: string): string => {
  const written = (format: string) => `to_char(${name} at time zone ${zone}, '${format}')`;
  const [whole, parts] = [
    written(`YYYY-MM-DD"T"HH24:MI:SS${end}`),
    written(`YYYY-MM-DD"T"HH24:MI:SS.US${end}`),
  ];
  return `case when ${name} = date_trunc('second', ${name}) then ${whole} else ${parts} end`;
};

/** A time with a zone of its own: what the clock shows there, and how far it is ahead of UTC. */
const local = (name: string, zone: string): string =>
  `(${clock(name, zone, '')}) || (select case when ahead < interval '0' then '-' else '+' end || ` +
  `to_char(greatest(ahead, -ahead), 'HH24:MI') ` +
  `from (select (${name} at time zone ${zone}) - (${name} at time zone 'UTC') as ahead) as there)`;

/** The type of a column, as clients know it. A document is a text. */
export const shownType = (type: Type, typeName: string): string => (type === 'json' ? 'String' : typeName);

/** The columns of a statement, each as it is. */
export const plainColumns = ({ columns }: Statement): OutputColumn[] =>
  columns.map(({ name, type, typeName }, from) => ({ name, type: shownType(type, typeName), from }));
