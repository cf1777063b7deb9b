// Functions for arrays (indexes start at 1), tuples and maps. A map is a JSON object.
import { coerced } from '../coerce.ts';
import { align, castArray } from '../compare.ts';
import { arrayElement, arrayOf, tupleElement, tupleOf, unifyAll, withClocks } from '../compound.ts';
import { fault } from '../errors.ts';
import { jsonStep } from '../json-path.ts';
import type { Place } from '../printer.ts';
import { digits, join, NOTHING, type Sql, sql } from '../sql.ts';
import { isTuple, type Type, type Value } from '../types.ts';
import { compared } from '../work.ts';
import { ARRAY_ROWS } from './array-rows.ts';
import { elementOf, LAMBDAS, ARRAYS as MOST_ARRAYS } from './lambdas.ts';
import {
  bounded,
  bounds,
  custom,
  type FunctionCall,
  type FunctionSpec,
  type FunctionTable,
  literalCount,
  MANY,
  of,
} from './spec.ts';

const keep = (make: (array: Sql, ...rest: Sql[]) => Sql, min = 1, max = 1): FunctionSpec =>
  custom(min, max, (call) => {
    const [array, ...rest] = call.args as [Value, ...Value[]];
    elementOf(array, call);
    return {
      sql: make(array.sql, ...rest.map((one) => coerced(call.place, one, 'int', call.span))),
      type: array.type,
    };
  });

/** Adds an element to an array. Converts both to a common type. */
const push = (make: (array: Sql, element: Sql) => Sql) =>
  custom(2, 2, (call) => {
    const { place, args, span } = call;
    const [array, element] = args as [Value, Value];
    const inner = elementOf(array, call);
    const single = arrayOf(place, [element], span);
    const both =
      inner === 'null'
        ? { left: castArray(array, (single.type as { array: Type }).array), right: single }
        : align(place, array, single, span);
    return { sql: make(both.left.sql, both.right.sql), type: both.left.type };
  });

/** Compares each element of one list with each one of another. */
const overlap = (operator: Sql) =>
  custom(2, 2, (call) => {
    const { place, args, span } = call;
    for (const one of args) elementOf(one, call);
    const both = align(place, args[0]!, args[1]!, span);
    const [left, right] = [both.left.sql, both.right.sql];
    return { sql: sql`(${compared(left, right)} ${operator} ${right})`, type: 'bool' };
  });

const finder = (make: (array: Sql, element: Sql) => Sql, type: Type) =>
  custom(2, 2, (call) => {
    const { place, args, span } = call;
    const [array, element] = args as [Value, Value];
    elementOf(array, call);
    const both = align(place, array, arrayOf(place, [element], span), span);
    return { sql: make(both.left.sql, sql`(${both.right.sql})[1]`), type };
  });

const array = custom(0, MANY, ({ place, args, span }) => arrayOf(place, args, span));

const concat = custom(1, MANY, ({ place, args, span }) => {
  const types = unifyElements(place, args, span);
  return {
    sql: sql`(${join(
      types.map((one) => one.sql),
      sql` || `,
    )})`,
    type: types[0]!.type,
  };
});

/** Implements arrayZip: the first elements of all arrays as a tuple, then the second ones. What an array lacks is missing. */
const zip = custom(1, MOST_ARRAYS, (call) => {
  const { place, node, args } = call;
  const alias = place.printer.rowsOf(node);
  const names = args.map((_, index) => sql`x${digits(index)}`);
  const tuple = tupleOf(
    args.map((one, index): Value => ({ sql: sql`${alias}.${names[index]!}`, type: elementOf(one, call) })),
  );
  const element: Value = { sql: tuple.sql, type: tuple.type };
  const list = bounded(place, element, sql`array_agg(${element.sql} order by ${alias}.n)`);
  return {
    sql: sql`(select coalesce(${list}, array[]::jsonb[])
      from unnest(${join(args.map((one) => one.sql))}) with ordinality as ${alias}(${join(names)}, n))`,
    type: { array: element.type },
    built: 1,
  };
});

function unifyElements(place: Place, arrays: Value[], span: FunctionCall['span']): Value[] {
  const elements = arrays.map((one): Value => ({ sql: one.sql, type: elementOf(one, { span }) }));
  const known = elements.filter((one) => one.type !== 'null');
  const { type } = known.length > 0 ? unifyAll(place, known, span) : { type: 'null' as Type };
  return arrays.map((one) => castArray(one, type));
}

/** Implements arrayIntersect: the elements of the first array that all others have, each once. */
const intersect = custom(1, MOST_ARRAYS, (call) => {
  const { place, node, args, span } = call;
  const [first, ...others] = unifyElements(place, args, span) as [Value, ...Value[]];
  const alias = place.printer.rowsOf(node);
  const tests = others.map((one) => sql`${alias}.x = any(${compared(one.sql, first.sql)})`);
  const where = tests.length > 0 ? sql` where ${join(tests, sql` and `)}` : NOTHING;
  return {
    sql: sql`(select coalesce(array_agg(${alias}.x order by ${alias}.n), (${first.sql})[:0])
      from unnest(hq.array_distinct(${first.sql})) with ordinality as ${alias}(x, n)${where})`,
    type: first.type,
  };
});

/** Declares a function that moves elements from one end of an array to the other. */
const rotate = (direction: Sql): FunctionSpec =>
  custom(2, 2, (call) => {
    const { place, args, span } = call;
    const [array, count] = args as [Value, Value];
    elementOf(array, call);
    const by = sql`(${direction}${coerced(place, count, 'int', span)})`;
    return { sql: sql`hq.array_rotate(${array.sql}, ${by})`, type: array.type };
  });

const element = custom(2, 2, ({ place, args, span }) => {
  const [value, key] = args as [Value, Value];
  if (value.json || value.type === 'json') return jsonStep(place, value, key, span);
  if (key.literal === 0) throw fault('Array indexes start from 1', span);
  elementOf(value, { span });
  return arrayElement(place, value, key, span);
});

const INT_ARRAY: Type = { array: 'int' };
const TEXTS: Type = { array: 'string' };
const unnest = custom(1, 1, (call) => ({
  sql: sql`unnest(${call.args[0]!.sql})`,
  type: elementOf(call.args[0]!, call),
}));

export const ARRAYS: FunctionTable = {
  ...LAMBDAS,
  ...ARRAY_ROWS,
  array,
  emptyArrayString: custom(0, 0, () => ({ sql: sql`array[]::text[]`, type: { array: 'string' } })),
  emptyArrayInt64: custom(0, 0, () => ({ sql: sql`array[]::bigint[]`, type: INT_ARRAY })),
  range: bounds('i i? i?', INT_ARRAY, (most, one, two, step) =>
    two
      ? sql`hq.range(${one}, ${two}, ${step ?? sql`1::bigint`}, ${most})`
      : sql`hq.range(0::bigint, ${one}, 1::bigint, ${most})`,
  ),
  arrayElement: element,
  has: finder((list, one) => sql`coalesce(array_position(${list}, ${one}) is not null, false)`, 'bool'),
  hasAll: overlap(sql`@>`),
  hasAny: overlap(sql`&&`),
  indexOf: finder((list, one) => sql`coalesce(array_position(${list}, ${one}), 0)::bigint`, 'int'),
  countEqual: finder((list, one) => sql`cardinality(array_positions(${list}, ${one}))::bigint`, 'int'),
  arrayConcat: concat,
  arrayIntersect: intersect,
  arrayRotateLeft: rotate(NOTHING),
  arrayRotateRight: rotate(sql`- `),
  arrayPushBack: push((list, one) => sql`(${list} || ${one})`),
  arrayPushFront: push((list, one) => sql`(${one} || ${list})`),
  arrayPopBack: keep((list) => sql`trim_array(${list}, least(1, cardinality(${list})))`),
  arrayPopFront: keep((list) => sql`(${list})[2:]`),
  arraySlice: keep(
    (list, from, count) =>
      count ? sql`hq.array_slice(${list}, ${from!}, ${count})` : sql`hq.array_slice(${list}, ${from!})`,
    2,
    3,
  ),
  arrayDistinct: keep((list) => sql`hq.array_distinct(${list})`),
  arrayReverse: keep((list) => sql`hq.array_reverse(${list})`),
  arrayFlatten: keep((list) => list),
  arrayCompact: keep((list) => sql`hq.array_compact(${list})`),
  arrayZip: zip,
  arrayZipUnaligned: zip,
  arrayJoin: unnest,
  tupleElement: custom(2, 2, ({ args, span }) => {
    if (!isTuple(args[0]!.type)) throw fault('A tuple is needed here', span);
    return tupleElement(args[0]!, literalCount(args[1], 'The number of the element', 1, MANY, span), span);
  }),
  map: custom(0, MANY, ({ place, args, span }) => {
    const parts = args.map((one, index) =>
      index % 2 === 0 ? coerced(place, one, 'string', span) : withClocks(place, one, span).sql,
    );
    if (parts.length % 2 === 1) throw fault('A map needs pairs of a key and a value', span);
    return { sql: sql`jsonb_build_object(${join(parts)})`, type: 'json', certain: true };
  }),
  mapKeys: bounds('j', TEXTS, (most, value) => sql`hq.json_keys(hq.listed(${value}, ${most}))`),
  mapValues: bounds('j', TEXTS, (most, value) => sql`hq.json_values(hq.listed(${value}, ${most}))`),
  mapFromArrays: custom(2, 2, (call) => {
    const { place, node, args, span } = call;
    const [keys, values] = [args[0]!, withClocks(place, args[1]!, span)];
    for (const one of [keys, values]) elementOf(one, call);
    const alias = place.printer.rowsOf(node);
    const pair: Value = { sql: sql`jsonb_build_array(${alias}.k, ${alias}.x)`, type: 'json' };
    const made = bounded(place, pair, sql`jsonb_object_agg(${alias}.k, ${alias}.x)`);
    return {
      sql: sql`(select coalesce(${made}, '{}')
        from unnest((${keys.sql})::text[], ${values.sql}) as ${alias}(k, x) where ${alias}.k is not null)`,
      type: 'json',
      built: 1,
    };
  }),
  mapUpdate: of('j j', 'json', (one, other) => sql`(${one} || ${other})`),
  mapContains: of('j s', 'bool', (value, key) => sql`jsonb_exists(${value}, ${key})`),
};
