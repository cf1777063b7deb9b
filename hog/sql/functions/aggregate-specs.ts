// The aggregates: their arguments and their SQL.
import type { Call } from '../../ast/index.ts';
import { coerce, coerced, postgresType } from '../coerce.ts';
import { tupleOf, withClocks } from '../compound.ts';
import { printCondition, printExpr } from '../dispatch.ts';
import { fault, unsupported } from '../errors.ts';
import { printOrder } from '../order.ts';
import type { Place } from '../printer.ts';
import { digits, join, NOTHING, type Sql, sql } from '../sql.ts';
import { isArray, type Type, type Value } from '../types.ts';
import { bounded, literalCount, MANY } from './spec.ts';

export interface Aggregate {
  min: number;
  max: number;
  params?: [number, number];
  /** True if the values come from WITHIN GROUP (ORDER BY …). */
  within?: boolean;
  /**
   * Prints the aggregate. `filter` is ` filter (where …)` or empty; it must directly follow the aggregate's arguments.
   */
  print: (input: Input) => Value;
}

interface Input {
  place: Place;
  node: Call;
  args: Value[];
  params: Value[];
  filter: Sql;
  /** Returns the filter with the additional condition that a value is not NULL. */
  present: (value: Sql) => Sql;
  distinct: Sql;
  /** True over a window. There, Postgres allows no order inside of an aggregate. */
  windowed: boolean;
}

const number = (place: Place, value: Value): Value => coerce(place, value, 'number');

/** A sum of integers is an integer. The sum of nothing is 0, as in ClickHouse. */
const sum: Aggregate = {
  min: 1,
  max: 1,
  print: ({ place, args, filter, distinct }) => {
    const value = number(place, args[0]!);
    const made = sql`sum(${distinct}${value.sql})${filter}`;
    return value.type === 'int'
      ? { sql: sql`coalesce(${made}, 0)::bigint`, type: 'int', certain: true }
      : { sql: sql`coalesce(${made}, 0)::float8`, type: 'float', certain: true };
  },
};

const real = (name: Sql, count = 1): Aggregate => ({
  min: count,
  max: count,
  print: ({ place, args, filter, distinct }) => ({
    sql: sql`${name}(${distinct}${join(args.map((one) => coerced(place, one, 'float')))})${filter}`,
    type: 'float',
  }),
});

/** Counts rows if it has no arguments, otherwise the values that are not NULL. */
export const count: Aggregate = {
  min: 0,
  max: MANY,
  print: ({ args, filter, distinct, node }) => {
    if (args.length > 1 && !node.distinct) {
      throw fault('count takes at most 1 argument: count(distinct a, b) counts pairs', node.span);
    }
    const only = node.args[0];
    const star = args.length === 0 || (only?.kind === 'field' && only.chain.join('.') === '*');
    const what = star
      ? sql`*`
      : args.length === 1
        ? args[0]!.sql
        : sql`(${join(args.map((one) => one.sql))})`;
    return { sql: sql`count(${star ? NOTHING : distinct}${what})${filter}`, type: 'int', certain: true };
  },
};

const uniq: Aggregate = {
  min: 1,
  max: MANY,
  print: ({ args, filter }) => {
    const what = args.length === 1 ? args[0]!.sql : sql`(${join(args.map((one) => one.sql))})`;
    return { sql: sql`count(distinct ${what})${filter}`, type: 'int', certain: true };
  },
};

/**
 * Compares text by its bytes. UUIDs and booleans are converted first, because Postgres has no `min` and `max` for them.
 */
const extreme = (name: Sql): Aggregate => ({
  min: 1,
  max: 1,
  print: ({ args, filter }) => {
    const [value] = args as [Value];
    if (value.type === 'string')
      return { sql: sql`${name}(${value.sql} collate "C")${filter}`, type: 'string' };
    if (value.type === 'bool') return { sql: sql`(${name}((${value.sql})::int)${filter} = 1)`, type: 'bool' };
    if (value.type === 'uuid')
      return { sql: sql`${name}((${value.sql})::text collate "C")${filter}::uuid`, type: 'uuid' };
    return { sql: sql`${name}(${value.sql})${filter}`, type: value.type };
  },
});

/** Returns any value that is not NULL, in practice the first one that Postgres reads. */
const any: Aggregate = {
  min: 1,
  max: 1,
  print: ({ args, filter }) => ({ sql: sql`any_value(${args[0]!.sql})${filter}`, type: args[0]!.type }),
};

const last: Aggregate = {
  min: 1,
  max: 1,
  print: ({ args, filter }) => ({ sql: sql`hq.last_known(${args[0]!.sql})${filter}`, type: args[0]!.type }),
};

const byExtreme = (direction: Sql): Aggregate => ({
  min: 2,
  max: 2,
  print: ({ args, filter }) => {
    const [value, by] = args as [Value, Value];
    const key = by.type === 'string' ? sql`${by.sql} collate "C"` : by.sql;
    return {
      sql: sql`(hq.first_in_order(array[${value.sql}]::${postgresType(value.type)}[] order by ${key} ${direction} nulls last)${filter})[1]`,
      type: value.type,
    };
  },
});

/** Prints ORDER BY inside an aggregate. Constants are left out. */
function orderWithin(place: Place, node: Call): Sql {
  const order = node.orderBy ? printOrder(place, node.orderBy) : NOTHING;
  return order.text === '' ? NOTHING : sql` order by ${order}`;
}

const listOf = (distinct: boolean): Aggregate => ({
  min: 1,
  max: 1,
  params: [0, 1],
  print: ({ place, node, args, params, present, windowed }) => {
    const [value] = args as [Value];
    if (isArray(value.type)) throw unsupported('An array of arrays', node.span);
    const asked = orderWithin(place, node);
    // Without an order, Postgres could keep the lists of all groups at once. This one keeps the rows as they come.
    const order = asked === NOTHING && !distinct && !windowed ? sql` order by 1::int` : asked;
    const condition = present(value.sql);
    const empty = sql`array[]::${postgresType(value.type)}[]`;
    const only = distinct ? sql`distinct ` : NOTHING;
    const kept = bounded(place, value, sql`array_agg(${only}${value.sql}${order})${condition}`, {
      distinct: only,
      filter: condition,
    });
    const list = sql`coalesce(${kept}, ${empty})`;
    if (params.length === 0) return { sql: list, type: { array: value.type }, certain: true, built: 1 };
    literalCount(params[0], 'The length', 0, 1_000_000, node.span);
    return {
      sql: sql`(${list})[:hq.count_of(${params[0]!.sql})]`,
      type: { array: value.type },
      certain: true,
      built: 1,
    };
  },
});

function level(value: Value | undefined, span: Call['span']): Value {
  const found = value?.literal;
  if (typeof found !== 'number' || found < 0 || found > 1)
    throw fault('A quantile level must be a number from 0 to 1', span);
  return value as Value;
}

const quantileAt = (place: Place, value: Value, at: Sql, filter: Sql): Value => {
  const made = sql`percentile_cont(${at}) within group (order by ${coerced(place, value, 'float')})${filter}`;
  return { sql: made, type: 'float' };
};

const quantile: Aggregate = {
  min: 1,
  max: 1,
  params: [0, 1],
  print: ({ place, node, args, params, filter }) => {
    const at = params.length > 0 ? coerced(place, level(params[0], node.span), 'float') : sql`0.5`;
    return quantileAt(place, args[0]!, at, filter);
  },
};

const median: Aggregate = { ...quantile, params: [0, 0] };

const quantiles: Aggregate = {
  min: 1,
  max: 1,
  params: [1, 100],
  print: ({ place, node, args, params, filter }) => {
    const levels = params.map((one) => coerced(place, level(one, node.span), 'float'));
    return { ...quantileAt(place, args[0]!, sql`array[${join(levels)}]`, filter), type: { array: 'float' } };
  },
};

/** Declares an aggregate of SQL, as in `percentile_cont(0.5) within group (order by x desc)`. */
const percentile = (
  make: (place: Place, value: Value) => { name: Sql; key: Sql; type: Type },
): Aggregate => ({
  // The parser makes parameters of arguments before WITHIN GROUP.
  min: 0,
  max: 0,
  params: [1, 1],
  within: true,
  print: ({ place, node, params, filter }) => {
    const [order, ...others] = node.withinGroup ?? [];
    if (!order || others.length > 0) {
      throw fault(`${node.name} takes one expression: WITHIN GROUP (ORDER BY …)`, node.span);
    }
    const at = coerced(place, level(params[0], node.span), 'float');
    const { name, key, type } = make(place, printExpr(place, order.expr));
    const direction = order.order === 'DESC' ? sql` desc` : NOTHING;
    return { sql: sql`${name}(${at}) within group (order by ${key}${direction})${filter}`, type };
  },
});

/** The average of values, each with a weight. */
const weighted: Aggregate = {
  min: 2,
  max: 2,
  print: ({ place, args, present }) => {
    const [value, weight] = args.map((one) => coerced(place, one, 'float')) as [Sql, Sql];
    const filter = present(sql`(${value} * ${weight})`);
    return {
      sql: sql`(sum(${value} * ${weight})${filter} / nullif(sum(${weight})${filter}, 0))`,
      type: 'float',
    };
  },
};

/** The line `k * x + b` that fits the points best, as the tuple of k and b. */
const line: Aggregate = {
  min: 2,
  max: 2,
  print: ({ place, args, filter }) => {
    const [x, y] = args.map((one) => coerced(place, one, 'float')) as [Sql, Sql];
    return tupleOf([
      { sql: sql`regr_slope(${y}, ${x})${filter}`, type: 'float' },
      { sql: sql`regr_intercept(${y}, ${x})${filter}`, type: 'float' },
    ]);
  },
};

/** Declares an aggregate of the bits of whole numbers. `empty` is that of no numbers. */
const bits = (name: Sql, empty: Sql): Aggregate => ({
  min: 1,
  max: 1,
  print: ({ place, args, filter }) => ({
    sql: sql`coalesce(${name}(${coerced(place, args[0]!, 'int')})${filter}, ${empty})`,
    type: 'int',
  }),
});

/** It keeps the values of all rows to count them, so it may have this many times as much as other values. */
const TOP_K = 4;

const topK: Aggregate = {
  min: 1,
  max: 1,
  params: [0, 1],
  print: ({ place, node, args, params, present }) => {
    if (params.length > 0) literalCount(params[0], 'The number of values', 1, 65_536, node.span);
    const filter = present(args[0]!.sql);
    const list = bounded(place, args[0]!, sql`array_agg(${args[0]!.sql} order by 1::int)${filter}`, {
      filter,
      most: sql`(${place.printer.sizes.most()} * ${digits(TOP_K)})`,
    });
    return {
      sql: sql`hq.top_k(${list}, ${params[0]?.sql ?? sql`10::bigint`})`,
      type: { array: args[0]!.type },
      built: TOP_K,
    };
  },
};

const logical = (name: Sql): Aggregate => ({
  min: 1,
  max: 1,
  print: ({ place, node, filter }) => ({
    sql: sql`${name}(${printCondition(place, node.args[0]!, false)})${filter}`,
    type: 'bool',
  }),
});

const joined: Aggregate = {
  min: 2,
  max: 2,
  print: ({ place, node, args, filter, distinct }) => {
    const order = orderWithin(place, node);
    const [text, separator] = args.map((one) => coerced(place, one, 'string')) as [Sql, Sql];
    const kept = bounded(
      place,
      // The texts and what stands between them.
      { sql: distinct === NOTHING ? sql`(${text} || coalesce(${separator}, ''))` : text, type: 'string' },
      sql`string_agg(${distinct}${text}, ${separator}${order === NOTHING && distinct === NOTHING ? sql` order by 1::int` : order})${filter}`,
      { distinct, filter },
    );
    return { sql: kept, type: 'string', built: 1 };
  },
};

/** Implements json_agg as PostHog has it: the text of a list of all values that are not NULL. */
const jsonList: Aggregate = {
  min: 1,
  max: 1,
  print: ({ place, node, args, present }) => {
    const value = withClocks(place, args[0]!, node.span);
    const filter = present(args[0]!.sql);
    const asked = orderWithin(place, node);
    const list = bounded(
      place,
      { sql: sql`to_jsonb(${value.sql})`, type: 'json' },
      sql`jsonb_agg(${value.sql}${asked === NOTHING ? sql` order by 1::int` : asked})${filter}`,
      { filter },
    );
    return { sql: sql`hq.compact_json(coalesce(${list}, '[]'))`, type: 'string', certain: true, built: 2 };
  },
};

export const AGGREGATES: Readonly<Record<string, Aggregate>> = {
  count,
  countDistinct: uniq,
  sum,
  avg: real(sql`avg`),
  min: extreme(sql`min`),
  max: extreme(sql`max`),
  uniq,
  uniqExact: uniq,
  uniqHLL12: uniq,
  uniqCombined: uniq,
  uniqTheta: uniq,
  any,
  any_value: any,
  anyLast: last,
  anyHeavy: any,
  first_value: any,
  last_value: last,
  argMin: byExtreme(sql`asc`),
  argMax: byExtreme(sql`desc`),
  groupArray: listOf(false),
  array_agg: listOf(false),
  groupUniqArray: listOf(true),
  quantile,
  quantileExact: quantile,
  quantileTDigest: quantile,
  quantiles,
  median,
  medianExact: median,
  medianTDigest: median,
  percentile_cont: percentile((place, value) => ({
    name: sql`percentile_cont`,
    key: coerced(place, value, 'float'),
    type: 'float',
  })),
  percentile_disc: percentile((_place, { sql: key, type }) => ({
    name: sql`percentile_disc`,
    key: type === 'string' ? sql`${key} collate "C"` : key,
    type,
  })),
  avgWeighted: weighted,
  simpleLinearRegression: line,
  groupBitAnd: bits(sql`bit_and`, sql`null`),
  groupBitOr: bits(sql`bit_or`, sql`0`),
  groupBitXor: bits(sql`bit_xor`, sql`0`),
  topK,
  stddevPop: real(sql`stddev_pop`),
  stddevSamp: real(sql`stddev_samp`),
  stddev_pop: real(sql`stddev_pop`),
  stddev_samp: real(sql`stddev_samp`),
  varPop: real(sql`var_pop`),
  varSamp: real(sql`var_samp`),
  var_pop: real(sql`var_pop`),
  var_samp: real(sql`var_samp`),
  covarPop: real(sql`covar_pop`, 2),
  covarSamp: real(sql`covar_samp`, 2),
  corr: real(sql`corr`, 2),
  string_agg: joined,
  json_agg: jsonList,
  every: logical(sql`bool_and`),
  bool_and: logical(sql`bool_and`),
  bool_or: logical(sql`bool_or`),
};
