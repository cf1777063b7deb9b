// Arrays (from 1), tuples and maps. A map is a JSON object.
import type { Call, Lambda } from '../../ast/index.ts';
import { coerce, coerced, postgresType } from '../coerce.ts';
import { align, castArray } from '../compare.ts';
import { arrayElement, arrayOf, tupleElement, unifyAll } from '../compound.ts';
import { printCondition, printExpr } from '../dispatch.ts';
import { fault, unsupported } from '../errors.ts';
import { jsonStep } from '../json-path.ts';
import type { Place } from '../printer.ts';
import { join, type Sql, sql } from '../sql.ts';
import { isArray, isTuple, type Type, typeName, type Value } from '../types.ts';
import {
  custom,
  type FunctionCall,
  type FunctionSpec,
  type FunctionTable,
  lazy,
  literalCount,
  MANY,
  of,
} from './spec.ts';

function elementOf(value: Value, call: { span?: FunctionCall['span'] }): Type {
  if (!isArray(value.type)) throw fault(`An array is needed here, not a ${typeName(value.type)}`, call.span);
  return value.type.array;
}

const keep = (make: (array: Sql, ...rest: Sql[]) => Sql, min = 1, max = 1): FunctionSpec =>
  custom(min, max, (call) => {
    const [array, ...rest] = call.args as [Value, ...Value[]];
    elementOf(array, call);
    return {
      sql: make(array.sql, ...rest.map((one) => coerced(call.place, one, 'int', call.span))),
      type: array.type,
    };
  });

/** The array with one more element, in the type that both have. */
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

const overlap = (operator: Sql) =>
  custom(2, 2, ({ place, args, span }) => {
    const both = align(place, args[0]!, args[1]!, span);
    return { sql: sql`(${both.left.sql} ${operator} ${both.right.sql})`, type: 'bool' };
  });

const finder = (make: (array: Sql, element: Sql) => Sql, type: Type) =>
  custom(2, 2, (call) => {
    const { place, args, span } = call;
    const [array, element] = args as [Value, Value];
    elementOf(array, call);
    const both = align(place, array, arrayOf(place, [element], span), span);
    return { sql: make(both.left.sql, sql`(${both.right.sql})[1]`), type };
  });

/** Evaluates `work` with the lambda's parameter bound to the elements of the array. */
function each<T>(
  place: Place,
  node: Call,
  work: (loop: { from: Sql; order: Sql; element: Sql; type: Type; body: Lambda }) => T,
): T {
  const [lambda, list] = node.args as [Call['args'][0], Call['args'][0]];
  if (lambda?.kind !== 'lambda' || lambda.params.length !== 1) {
    throw fault(`${node.name} takes a function of one parameter: ${node.name}(x -> …, array)`, node.span);
  }
  if (lambda.body.kind === 'block') throw unsupported('A function with statements', node.span);
  const array = printExpr(place, list!);
  const type = elementOf(array, node.span ? { span: node.span } : {});
  const alias = place.printer.name('v');
  const element = sql`${alias}.x`;
  const value: Value = { sql: element, type };
  place.scope.lambdas.push(new Map([[lambda.params[0] as string, value]]));
  try {
    return place.printer.barAggregates('a function of an array', () =>
      work({
        from: sql`unnest(${array.sql}) with ordinality as ${alias}(x, n)`,
        order: sql`${alias}.n`,
        element,
        type,
        body: lambda,
      }),
    );
  } finally {
    place.scope.lambdas.pop();
  }
}

const arrayMap = lazy(2, 2, (place, node) =>
  each(place, node, ({ from, order, body }) => {
    const made = printExpr(place, body.body as Call);
    if (isArray(made.type)) throw unsupported('An array of arrays', node.span);
    const type = postgresType(made.type);
    return {
      sql: sql`(select coalesce(array_agg(${made.sql} order by ${order}), array[]::${type}[]) from ${from})`,
      type: { array: made.type },
    };
  }),
);

const filtered = (make: (loop: { from: Sql; order: Sql; element: Sql; test: Sql; type: Type }) => Value) =>
  lazy(2, 2, (place, node) =>
    each(place, node, ({ from, order, element, type, body }) =>
      make({ from, order, element, type, test: printCondition(place, body.body as Call, true) }),
    ),
  );

const bool = (text: Sql): Value => ({ sql: text, type: 'bool', certain: true });

/** Sums and the like, of the elements or of what a function makes of them. */
const reduction = (name: Sql, type: (of: Type) => Type, empty: Sql | null): FunctionSpec =>
  lazy(1, 2, (place, node) => {
    const finish = (from: Sql, value: Value): Value => {
      const number =
        value.type === 'string' && name.text !== 'min' && name.text !== 'max'
          ? coerce(place, value, 'float')
          : value;
      const made = sql`(select ${name}(${number.sql}) from ${from})`;
      const result = type(number.type);
      const whole =
        result === 'int' ? sql`${made}::bigint` : result === 'float' ? sql`${made}::float8` : made;
      return { sql: empty ? sql`coalesce(${whole}, ${empty})` : whole, type: result };
    };
    if (node.args.length === 2) {
      return each(place, node, ({ from, body }) => finish(from, printExpr(place, body.body as Call)));
    }
    const array = printExpr(place, node.args[0]!);
    const alias = place.printer.name('v');
    const value: Value = {
      sql: sql`${alias}.x`,
      type: elementOf(array, node.span ? { span: node.span } : {}),
    };
    return finish(sql`unnest(${array.sql}) as ${alias}(x)`, value);
  });

/** arraySort(f?, array): by the elements, or by what the function makes of them. */
const sorted = (direction: Sql): FunctionSpec =>
  lazy(1, 2, (place, node) => {
    const finish = (from: Sql, order: Sql, element: Sql, type: Type, key: Value): Value => {
      const by = key.type === 'string' ? sql`${key.sql} collate "C"` : key.sql;
      return {
        sql: sql`(select coalesce(array_agg(${element} order by ${by} ${direction} nulls last, ${order}), array[]::${postgresType(type)}[]) from ${from})`,
        type: { array: type },
      };
    };
    if (node.args.length === 2) {
      return each(place, node, ({ from, order, element, type, body }) =>
        finish(from, order, element, type, printExpr(place, body.body as Call)),
      );
    }
    const array = printExpr(place, node.args[0]!);
    const type = elementOf(array, node.span ? { span: node.span } : {});
    const alias = place.printer.name('v');
    const from = sql`unnest(${array.sql}) with ordinality as ${alias}(x, n)`;
    return finish(from, sql`${alias}.n`, sql`${alias}.x`, type, { sql: sql`${alias}.x`, type });
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

function unifyElements(place: Place, arrays: Value[], span: FunctionCall['span']): Value[] {
  const elements = arrays.map((one): Value => ({ sql: one.sql, type: elementOf(one, { span }) }));
  const known = elements.filter((one) => one.type !== 'null');
  const { type } = known.length > 0 ? unifyAll(place, known, span) : { type: 'null' as Type };
  return arrays.map((one) => castArray(one, type));
}

const element = custom(2, 2, ({ place, args, span }) => {
  const [value, key] = args as [Value, Value];
  if (value.json || value.type === 'json') return jsonStep(place, value, key, span);
  if (key.literal === 0) throw fault('Array indexes start from 1', span);
  elementOf(value, { span });
  return arrayElement(place, value, key, span);
});

const INT_ARRAY: Type = { array: 'int' };
const unnest = custom(1, 1, (call) => ({
  sql: sql`unnest(${call.args[0]!.sql})`,
  type: elementOf(call.args[0]!, call),
}));

export const ARRAYS: FunctionTable = {
  array,
  emptyArrayString: custom(0, 0, () => ({ sql: sql`array[]::text[]`, type: { array: 'string' } })),
  emptyArrayInt64: custom(0, 0, () => ({ sql: sql`array[]::bigint[]`, type: INT_ARRAY })),
  range: of('i i? i?', INT_ARRAY, (one, two, step) =>
    two
      ? sql`hq.range(${one}, ${two}, ${step ?? sql`1::bigint`})`
      : sql`hq.range(0::bigint, ${one}, 1::bigint)`,
  ),
  arrayElement: element,
  has: finder((list, one) => sql`coalesce(array_position(${list}, ${one}) is not null, false)`, 'bool'),
  hasAll: overlap(sql`@>`),
  hasAny: overlap(sql`&&`),
  indexOf: finder((list, one) => sql`coalesce(array_position(${list}, ${one}), 0)::bigint`, 'int'),
  countEqual: finder((list, one) => sql`cardinality(array_positions(${list}, ${one}))::bigint`, 'int'),
  arrayConcat: concat,
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
  arrayUniq: custom(1, 1, (call) => {
    elementOf(call.args[0]!, call);
    return { sql: sql`cardinality(hq.array_distinct(${call.args[0]!.sql}))::bigint`, type: 'int' };
  }),
  arraySort: sorted(sql`asc`),
  arrayReverseSort: sorted(sql`desc`),
  arrayReverse: keep((list) => sql`hq.array_reverse(${list})`),
  arrayFlatten: keep((list) => list),
  arrayCompact: keep((list) => sql`hq.array_compact(${list})`),
  arrayJoin: unnest,
  arrayMap,
  arrayFilter: filtered(({ from, order, element: one, test, type }) => ({
    sql: sql`(select coalesce(array_agg(${one} order by ${order}), array[]::${postgresType(type)}[]) from ${from} where ${test})`,
    type: { array: type },
  })),
  arrayExists: filtered(({ from, test }) => bool(sql`exists (select from ${from} where ${test})`)),
  arrayAll: filtered(({ from, test }) =>
    bool(sql`(not exists (select from ${from} where (${test}) is not true))`),
  ),
  arrayCount: filtered(({ from, test }) => ({
    sql: sql`(select count(*) from ${from} where ${test})`,
    type: 'int',
    certain: true,
  })),
  arrayFirst: filtered(({ from, order, element: one, test, type }) => ({
    sql: sql`(select ${one} from ${from} where ${test} order by ${order} limit 1)`,
    type,
  })),
  arrayLast: filtered(({ from, order, element: one, test, type }) => ({
    sql: sql`(select ${one} from ${from} where ${test} order by ${order} desc limit 1)`,
    type,
  })),
  arrayFirstIndex: filtered(({ from, order, test }) => ({
    sql: sql`coalesce((select ${order} from ${from} where ${test} order by ${order} limit 1), 0)`,
    type: 'int',
  })),
  arraySum: reduction(sql`sum`, (type) => (type === 'int' ? 'int' : 'float'), sql`0`),
  arrayAvg: reduction(sql`avg`, () => 'float', null),
  arrayMin: reduction(sql`min`, (type) => type, null),
  arrayMax: reduction(sql`max`, (type) => type, null),
  tupleElement: custom(2, 2, ({ args, span }) => {
    if (!isTuple(args[0]!.type)) throw fault('A tuple is needed here', span);
    return tupleElement(args[0]!, literalCount(args[1], 'The number of the element', 1, MANY, span), span);
  }),
  map: custom(0, MANY, ({ place, args, span }) => {
    const parts = args.map((one, index) => (index % 2 === 0 ? coerced(place, one, 'string', span) : one.sql));
    if (parts.length % 2 === 1) throw fault('A map is made of pairs', span);
    return { sql: sql`jsonb_build_object(${join(parts)})`, type: 'json', certain: true };
  }),
  mapKeys: of('j', { array: 'string' }, (value) => sql`hq.json_keys(${value})`),
  mapValues: of('j', { array: 'string' }, (value) => sql`hq.json_values(${value})`),
  mapContains: of('j s', 'bool', (value, key) => sql`jsonb_exists(${value}, ${key})`),
};
