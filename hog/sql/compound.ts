// Arrays, tuples and maps.
import type { Span } from '../ast/index.ts';
import { coerce, coerced, postgresType } from './coerce.ts';
import { align, commonScalar } from './compare.ts';
import { fault, unsupported } from './errors.ts';
import type { Place } from './printer.ts';
import { digits, join, sql } from './sql.ts';
import { isArray, isDateTime, isSameType, isTuple, type Type, typeName, type Value } from './types.ts';

/**
 * Prints access to an array element. Indexes start at 1; negative ones count from the end. Yields NULL if there is no
 * such element.
 */
export function arrayElement(place: Place, object: Value, key: Value, span?: Span): Value {
  const type = (object.type as { array: Type }).array;
  const index = coerced(place, key, 'int', span);
  if (typeof key.literal === 'number' && key.literal > 0) {
    return { sql: sql`(${object.sql})[hq.count_of(${index})]`, type };
  }
  return { sql: sql`hq.array_element(${object.sql}, ${index})`, type };
}

/** Prints an element of a tuple. A computed tuple is a JSON array, whose elements have known types. */
export function tupleElement(value: Value, index: number, span?: Span): Value {
  const item = value.items?.[index - 1];
  if (item) return item;
  const types = isTuple(value.type) ? value.type.tuple : [];
  if (types[index - 1] === undefined || index < 1) {
    throw fault(`${typeName(value.type)} has no element ${index}`, span);
  }
  const type = types[index - 1] as Type;
  const at = digits(index - 1);
  if (type === 'json' || isTuple(type)) return { sql: sql`(${value.sql} -> ${at})`, type };
  if (!isArray(type)) return { sql: sql`(${value.sql} ->> ${at})::${postgresType(type)}`, type };
  const element = isTuple(type.array) || type.array === 'json' ? sql`v` : sql`(v #>> '{}')`;
  return {
    sql: sql`(select coalesce(array_agg(${element}::${postgresType(type.array)} order by n), array[]::${postgresType(type)})
      from jsonb_array_elements(nullif(${value.sql} -> ${at}, 'null')) with ordinality as e(v, n))`,
    type,
  };
}

const hasTimes = (type: Type): boolean =>
  isArray(type) ? hasTimes(type.array) : isTuple(type) ? type.tuple.some(hasTimes) : isDateTime(type);

/** Returns a value with texts in place of its times: what the clock of the zone of each one shows. */
export function withClocks(place: Place, value: Value, span?: Span): Value {
  const { type } = value;
  if (!hasTimes(type)) return value;
  if (isTuple(type)) {
    const items = type.tuple.map((_, index) => withClocks(place, tupleElement(value, index + 1, span), span));
    const made = tupleOf(items);
    return value.certain
      ? made
      : { ...made, sql: sql`(case when ${value.sql} is not null then ${made.sql} end)` };
  }
  if (!isArray(type)) return coerce(place, value, 'string', span);
  const alias = place.printer.name('v');
  const element = withClocks(place, { sql: sql`${alias}.x`, type: type.array }, span);
  return {
    ...(value.built !== undefined && { built: value.built }),
    sql: sql`(case when ${value.sql} is not null then (select coalesce(array_agg(${element.sql} order by ${alias}.n), array[]::${postgresType(element.type)}[])
      from unnest(${value.sql}) with ordinality as ${alias}(x, n)) end)`,
    type: { array: element.type },
  };
}

const isScalar = (type: Type): type is Exclude<Type, { array: Type } | { tuple: Type[] }> =>
  !isArray(type) && !isTuple(type);

/** Converts all values to one common type, as the members of an array need it. */
export function unifyAll(place: Place, values: Value[], span?: Span): { values: Value[]; type: Type } {
  const known = values.filter((one) => one.type !== 'null');
  if (known.length === 0) return { values, type: 'null' };
  let first = known[0] as Value;
  for (const value of known.slice(1)) {
    if (!isScalar(first.type) || !isScalar(value.type)) {
      align(place, first, value, span);
      continue;
    }
    const type = isSameType(first.type, value.type) ? first.type : commonScalar(first, value);
    if (!type) throw fault(`${typeName(first.type)} and ${typeName(value.type)} have no common type`, span);
    first = { ...first, type };
  }
  const { type } = first;
  if (!isScalar(type) || type === 'interval' || type === 'null') return { values, type };
  return { values: values.map((one) => coerce(place, one, type, span)), type };
}

export function arrayOf(place: Place, members: Value[], span?: Span): Value {
  const { values, type } = unifyAll(place, members, span);
  if (isArray(type)) throw unsupported('An array of arrays', span);
  const list = join(values.map((one) => one.sql));
  return { sql: sql`array[${list}]::${postgresType(type)}[]`, type: { array: type }, certain: true };
}

export function tupleOf(items: Value[]): Value {
  const list = join(items.map((one) => one.sql));
  return {
    sql: sql`jsonb_build_array(${list})`,
    type: { tuple: items.map((one) => one.type) },
    items,
    certain: true,
  };
}

export function dictOf(place: Place, pairs: [Value, Value][], span?: Span): Value {
  const parts = pairs.map(
    ([key, value]) => sql`${coerced(place, key, 'string', span)}, ${withClocks(place, value, span).sql}`,
  );
  return { sql: sql`jsonb_build_object(${join(parts)})`, type: 'json', certain: true };
}
