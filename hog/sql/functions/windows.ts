// Functions that only work over a window. Aggregates also work over a window.
import type { WindowFunction } from '../../ast/index.ts';
import { coerce, coerced } from '../coerce.ts';
import { fault } from '../errors.ts';
import type { Place } from '../printer.ts';
import { type Sql, sql } from '../sql.ts';
import { isZoned, type Value } from '../types.ts';

type Make = (place: Place, args: Value[], node: WindowFunction) => Value;

const ranking =
  (made: Sql, type: 'int' | 'float' = 'int'): Make =>
  (_place, args, node) => {
    if (args.length > 0) throw fault(`${node.name} takes no arguments`, node.span);
    return { sql: made, type };
  };

const picking =
  (name: Sql): Make =>
  (_place, args, node) => {
    if (args.length !== 1) throw fault(`${node.name} takes 1 argument`, node.span);
    return { sql: sql`${name}(${args[0]!.sql})`, type: args[0]!.type };
  };

/** Declares lag(value, offset = 1, default) and its relatives. */
const neighbour =
  (name: Sql): Make =>
  (place, args, node) => {
    const [value, offset, fallback] = args;
    if (!value || args.length > 3) throw fault(`${node.name} takes 1 to 3 arguments`, node.span);
    const by = offset ? sql`hq.count_of(${coerced(place, offset, 'int', node.span)})` : sql`1`;
    if (!fallback || fallback.type === 'null')
      return { sql: sql`${name}(${value.sql}, ${by})`, type: value.type };
    const other =
      isZoned(value.type) ||
      (typeof value.type === 'string' && value.type !== 'interval' && value.type !== 'null')
        ? coerce(place, fallback, value.type, node.span)
        : fallback;
    return { sql: sql`${name}(${value.sql}, ${by}, ${other.sql})`, type: value.type };
  };

/** Returns a window function. SQL has most of them, so their names are not case-sensitive. */
export function windowFunction(name: string): Make | undefined {
  const known = [name, name.toLowerCase()].find((one) => Object.hasOwn(WINDOW_FUNCTIONS, one));
  return known === undefined ? undefined : WINDOW_FUNCTIONS[known];
}

export const WINDOW_FUNCTIONS: Readonly<Record<string, Make>> = {
  row_number: ranking(sql`row_number()`),
  rank: ranking(sql`rank()`),
  dense_rank: ranking(sql`dense_rank()`),
  percent_rank: ranking(sql`percent_rank()`, 'float'),
  cume_dist: ranking(sql`cume_dist()`, 'float'),
  ntile: (place, args, node) => {
    if (args.length !== 1) throw fault('ntile takes 1 argument', node.span);
    return { sql: sql`ntile(hq.count_of(${coerced(place, args[0]!, 'int', node.span)}))`, type: 'int' };
  },
  first_value: picking(sql`first_value`),
  last_value: picking(sql`last_value`),
  nth_value: (place, args, node) => {
    if (args.length !== 2) throw fault('nth_value takes 2 arguments', node.span);
    const [value, index] = args as [Value, Value];
    return {
      sql: sql`nth_value(${value.sql}, hq.count_of(${coerced(place, index, 'int', node.span)}))`,
      type: value.type,
    };
  },
  lag: neighbour(sql`lag`),
  lead: neighbour(sql`lead`),
  lagInFrame: neighbour(sql`lag`),
  leadInFrame: neighbour(sql`lead`),
};
