// Functions that take a lambda, such as `arrayMap(x -> …, array)`, and those whose lambda is optional.
import type { Call, Lambda } from '../../ast/index.ts';
import { coerce, postgresType } from '../coerce.ts';
import { printCondition, printExpr } from '../dispatch.ts';
import { fault, unsupported } from '../errors.ts';
import type { Place } from '../printer.ts';
import { digits, join, type Sql, sql } from '../sql.ts';
import { isArray, type Type, typeName, type Value } from '../types.ts';
import { bounded, type FunctionCall, type FunctionSpec, type FunctionTable, lazy } from './spec.ts';

export function elementOf(value: Value, call: { span?: FunctionCall['span'] }): Type {
  if (!isArray(value.type)) throw fault(`An array is needed here, not a ${typeName(value.type)}`, call.span);
  return value.type.array;
}

/**
 * Runs `work` with the lambda's parameters bound to the elements of the arrays. `element` is that of the first array. Where
 * an array is shorter than another one, its elements are missing.
 */
function each<T>(
  place: Place,
  node: Call,
  work: (loop: { from: Sql; order: Sql; element: Sql; type: Type; body: Lambda }) => T,
): T {
  const [lambda, ...lists] = node.args;
  if (lambda?.kind !== 'lambda' || lambda.params.length !== lists.length) {
    throw fault(
      `${node.name} takes a function, with a parameter for each array: ${node.name}(x -> …, array)`,
      node.span,
    );
  }
  if (lambda.body.kind === 'block') throw unsupported('A function with statements', node.span);
  const arrays = lists.map((one) => printExpr(place, one));
  const types = arrays.map((one) => elementOf(one, node.span ? { span: node.span } : {}));
  const alias = place.printer.rowsOf(node);
  const names = arrays.map((_, index) => (index === 0 ? sql`x` : sql`x${digits(index)}`));
  const parameters = arrays.map((array, index): [string, Value] => [
    lambda.params[index] as string,
    {
      sql: sql`${alias}.${names[index]!}`,
      type: types[index]!,
      ...(array.built && { built: array.built }),
    },
  ]);
  place.scope.lambdas.push(new Map(parameters));
  try {
    return place.printer.barAggregates('a function of an array', () =>
      work({
        from: sql`unnest(${join(arrays.map((one) => one.sql))}) with ordinality as ${alias}(${join(names)}, n)`,
        order: sql`${alias}.n`,
        element: sql`${alias}.x`,
        type: types[0]!,
        body: lambda,
      }),
    );
  } finally {
    place.scope.lambdas.pop();
  }
}

/** The most arrays that a lambda can go through at once. */
export const ARRAYS = 16;

/**
 * Prints the results of a lambda as a table. An aggregate of an expression without a parameter would be one of the query around,
 * because Postgres finds the query of an aggregate by the columns in it.
 */
const resultsOf = (result: Sql, order: Sql, from: Sql, alias: Sql): Sql =>
  sql`(select ${result}, ${order} from ${from}) as ${alias}(x, n)`;

const arrayMap = lazy(2, 1 + ARRAYS, (place, node) =>
  each(place, node, ({ from, order, body }) => {
    const made = printExpr(place, body.body as Call);
    if (isArray(made.type)) throw unsupported('An array of arrays', node.span);
    const type = postgresType(made.type);
    const results = place.printer.rowsOf(node, 1);
    const element = sql`${results}.x`;
    const list = bounded(
      place,
      { sql: element, type: made.type },
      sql`array_agg(${element} order by ${results}.n)`,
    );
    return {
      sql: sql`(select coalesce(${list}, array[]::${type}[]) from ${resultsOf(sql`(${made.sql})::${type}`, order, from, results)})`,
      type: { array: made.type },
      built: 1,
    };
  }),
);

const filtered = (make: (loop: { from: Sql; order: Sql; element: Sql; test: Sql; type: Type }) => Value) =>
  lazy(2, 1 + ARRAYS, (place, node) =>
    each(place, node, ({ from, order, element, type, body }) =>
      make({ from, order, element, type, test: printCondition(place, body.body as Call, true) }),
    ),
  );

const bool = (text: Sql): Value => ({ sql: text, type: 'bool', certain: true });

/** Declares an aggregate of the array's elements, or of the lambda's results for them. */
const reduction = (name: Sql, type: (of: Type) => Type, empty: Sql | null): FunctionSpec =>
  lazy(1, 1 + ARRAYS, (place, node) => {
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
    if (node.args.length > 1) {
      return each(place, node, ({ from, order, body }) => {
        const made = printExpr(place, body.body as Call);
        const results = place.printer.rowsOf(node, 1);
        return finish(resultsOf(made.sql, order, from, results), { sql: sql`${results}.x`, type: made.type });
      });
    }
    const array = printExpr(place, node.args[0]!);
    const alias = place.printer.rowsOf(node);
    const value: Value = {
      sql: sql`${alias}.x`,
      type: elementOf(array, node.span ? { span: node.span } : {}),
    };
    return finish(sql`unnest(${array.sql}) as ${alias}(x)`, value);
  });

/** Implements arraySort(f?, array). Sorts by the elements, or by the lambda's results for them. */
const sorted = (direction: Sql): FunctionSpec =>
  lazy(1, 1 + ARRAYS, (place, node) => {
    const finish = (from: Sql, order: Sql, element: Sql, type: Type, key: Value): Value => {
      const by = key.type === 'string' ? sql`${key.sql} collate "C"` : key.sql;
      return {
        sql: sql`(select coalesce(array_agg(${element} order by ${by} ${direction} nulls last, ${order}), array[]::${postgresType(type)}[]) from ${from})`,
        type: { array: type },
      };
    };
    if (node.args.length > 1) {
      return each(place, node, ({ from, order, element, type, body }) =>
        finish(from, order, element, type, printExpr(place, body.body as Call)),
      );
    }
    const array = printExpr(place, node.args[0]!);
    const type = elementOf(array, node.span ? { span: node.span } : {});
    const alias = place.printer.rowsOf(node);
    const from = sql`unnest(${array.sql}) with ordinality as ${alias}(x, n)`;
    return finish(from, sql`${alias}.n`, sql`${alias}.x`, type, { sql: sql`${alias}.x`, type });
  });

export const LAMBDAS: FunctionTable = {
  arraySort: sorted(sql`asc`),
  arrayReverseSort: sorted(sql`desc`),
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
  arrayLastIndex: filtered(({ from, order, test }) => ({
    sql: sql`coalesce((select ${order} from ${from} where ${test} order by ${order} desc limit 1), 0)`,
    type: 'int',
  })),
  arraySum: reduction(sql`sum`, (type) => (type === 'int' ? 'int' : 'float'), sql`0`),
  arrayAvg: reduction(sql`avg`, () => 'float', null),
  arrayMin: reduction(sql`min`, (type) => type, null),
  arrayMax: reduction(sql`max`, (type) => type, null),
};
