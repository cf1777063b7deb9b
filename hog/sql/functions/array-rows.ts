// Functions that go through the elements of arrays in their order, and those that reduce them with an aggregate.
import { build, type Call } from '../../ast/index.ts';
import { coerce, postgresType } from '../coerce.ts';
import { printExpr } from '../dispatch.ts';
import { fault, quote, suggestion } from '../errors.ts';
import type { Place } from '../printer.ts';
import { digits, join, type Sql, sql } from '../sql.ts';
import type { Type, Value } from '../types.ts';
import { AGGREGATES, printAggregateCall } from './aggregates.ts';
import { elementOf, LAMBDAS, ARRAYS as MOST_ARRAYS } from './lambdas.ts';
import {
  bounded,
  custom,
  type FunctionCall,
  type FunctionSpec,
  type FunctionTable,
  lazy,
  literalText,
} from './spec.ts';

/** The rows of a call that have names: its elements, and those that become a list. The first ones are those of a lambda. */
const [ELEMENTS, LIST, SUMS, LIST_OF_SUMS] = [2, 3, 4, 5];

/** The elements of arrays side by side, as rows with the columns `x0`, `x1`, … and the number `n`. */
function rowsOf({ place, node, args, span }: FunctionCall, which = ELEMENTS) {
  const alias = place.printer.rowsOf(node, which);
  const names = args.map((_, index) => sql`x${digits(index)}`);
  return {
    elements: args.map(
      (one, index): Value => ({
        sql: sql`${alias}.${names[index]!}`,
        type: elementOf(one, { span }),
        ...(one.built !== undefined && { built: one.built }),
      }),
    ),
    n: sql`${alias}.n`,
    from: sql`unnest(${join(args.map((one) => one.sql))}) with ordinality as ${alias}(${join(names)}, n)`,
  };
}

/** Prints rows, which are a value and its number, as an array. */
function listed(place: Place, node: Call, type: Type, rows: Sql, which = LIST): Value {
  const alias = place.printer.rowsOf(node, which);
  const list = bounded(place, { sql: sql`${alias}.x`, type }, sql`array_agg(${alias}.x order by ${alias}.n)`);
  return {
    sql: sql`(select coalesce(${list}, array[]::${postgresType(type)}[]) from (${rows}) as ${alias}(x, n))`,
    type: { array: type },
    built: 1,
  };
}

/** Declares a function that numbers the elements of arrays. Those that are equal in all arrays count as one element. */
const numbering = (most: number, rows: (elements: Sql, n: Sql, from: Sql) => Sql): FunctionSpec =>
  custom(1, most, (call) => {
    const { elements, n, from } = rowsOf(call);
    return listed(call.place, call.node, 'int', rows(join(elements.map((one) => one.sql)), n, from));
  });

/** Declares a function of the numbers in an array, or of what a lambda makes of arrays. */
const ofNumbers = (value: (x: Sql, n: Sql) => Sql): FunctionSpec =>
  lazy(1, 1 + MOST_ARRAYS, (place, node) => {
    const [first] = node.args;
    const isMapped = first?.kind === 'lambda';
    if (!isMapped && node.args.length > 1) {
      throw fault(`${node.name} takes an array, or a function and arrays`, node.span);
    }
    const array = isMapped ? LAMBDAS.arrayMap!.lazy!(place, node) : printExpr(place, first!);
    const { elements, n, from } = rowsOf({ place, node, args: [array], span: node.span });
    const number = coerce(place, elements[0]!, 'number', node.span);
    const made = sql`(${value(number.sql, n)})::${postgresType(number.type)}`;
    return listed(place, node, number.type, sql`select ${made}, ${n} from ${from}`);
  });

const running = (x: Sql, n: Sql): Sql => sql`sum(${x}) over (order by ${n})`;

/** The name of an aggregate, and what stands in parentheses behind it. */
const AGGREGATE = /^\s*(\w+)\s*(?:\(([\d\s.,]*)\))?\s*$/;

/** Implements arrayReduce('aggregate', array, …): each argument of the aggregate is an array. */
const reduce = custom(2, 1 + MOST_ARRAYS, (call) => {
  const { place, args, span } = call;
  const text = literalText(args[0], 'The aggregate', span);
  const [, name = text, params] = AGGREGATE.exec(text) ?? [];
  const { elements, from } = rowsOf({ ...call, args: args.slice(1) });
  const fields = elements.map((_, index) => `element ${index}`);
  const { printer, scope } = place;
  const kept = printer.aggregatesBarred;
  scope.lambdas.push(new Map(elements.map((one, index) => [fields[index] as string, one])));
  // The aggregate is one of a query of its own, so it may stand where those of the query around may not.
  printer.aggregatesBarred = null;
  try {
    const value = printAggregateCall(place, {
      ...build.call(name, ...fields.map((one) => build.field(one))),
      params: params?.trim() ? params.split(',').map((one) => build.literal(Number(one))) : null,
      ...(span && { span }),
    });
    if (!value) {
      throw fault(
        `arrayReduce does not know the aggregate ${quote(name)}${suggestion(name, Object.keys(AGGREGATES))}`,
        span,
      );
    }
    return { ...value, sql: sql`(select ${value.sql} from ${from})` };
  } finally {
    printer.aggregatesBarred = kept;
    scope.lambdas.pop();
  }
});

export const ARRAY_ROWS: FunctionTable = {
  arrayReduce: reduce,
  arrayEnumerate: numbering(1, (_elements, n, from) => sql`select ${n}, ${n} from ${from}`),
  arrayEnumerateUniq: numbering(
    MOST_ARRAYS,
    (elements, n, from) =>
      sql`select row_number() over (partition by ${elements} order by ${n}), ${n} from ${from}`,
  ),
  arrayEnumerateDense: numbering(
    MOST_ARRAYS,
    (elements, n, from) =>
      sql`select dense_rank() over (order by first), n from (
        select min(${n}) over (partition by ${elements}) as first, ${n} as n from ${from}) as numbered`,
  ),
  arrayUniq: custom(1, MOST_ARRAYS, (call) => {
    const { elements, from } = rowsOf(call);
    const what = elements.length === 1 ? elements[0]!.sql : sql`(${join(elements.map((one) => one.sql))})`;
    return { sql: sql`(select count(distinct ${what}) from ${from})`, type: 'int' };
  }),
  arrayCumSum: ofNumbers(running),
  // The sum begins anew where it would fall below zero.
  arrayCumSumNonNegative: lazy(1, 1 + MOST_ARRAYS, (place, node) => {
    const sums = ARRAY_ROWS.arrayCumSum!.lazy!(place, node);
    const { elements, n, from } = rowsOf({ place, node, args: [sums], span: node.span }, SUMS);
    const [sum] = elements as [Value];
    const lowest = sql`least(0, min(${sum.sql}) over (order by ${n}))`;
    const made = sql`(${sum.sql} - ${lowest})::${postgresType(sum.type)}`;
    return listed(place, node, sum.type, sql`select ${made}, ${n} from ${from}`, LIST_OF_SUMS);
  }),
  arrayDifference: ofNumbers((x, n) => sql`${x} - lag(${x}, 1, ${x}) over (order by ${n})`),
};
