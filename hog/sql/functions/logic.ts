// Functions for nulls, conditions and comparisons.
import type { Call } from '../../ast/index.ts';
import { coerced, postgresType } from '../coerce.ts';
import { compareValues, likeTest } from '../compare.ts';
import { tupleOf, unifyAll } from '../compound.ts';
import { printCondition, printExpr, printSelect } from '../dispatch.ts';
import { fault } from '../errors.ts';
import type { Place } from '../printer.ts';
import { join, type Sql, sql } from '../sql.ts';
import { isArray, type Value } from '../types.ts';
import { custom, type FunctionTable, lazy, MANY } from './spec.ts';

const bool = (text: Sql): Value => ({ sql: text, type: 'bool', certain: true });

/** Prints CASE from pairs of a condition and a value, followed by an optional default. */
function printCase(place: Place, node: Call): Value {
  const conditions: Sql[] = [];
  const results: Value[] = [];
  for (let i = 0; i + 1 < node.args.length; i += 2) {
    conditions.push(printCondition(place, node.args[i]!, true));
    results.push(printExpr(place, node.args[i + 1]!));
  }
  const last = node.args.length % 2 === 1 ? node.args.at(-1) : undefined;
  results.push(last ? printExpr(place, last) : { sql: sql`null`, type: 'null', literal: null });
  const { values, type } = unifyAll(place, results, node.span);
  const branches = conditions.map((one, index) => sql` when ${one} then ${values[index]!.sql}`);
  const certain = results.every((one) => one.certain);
  return {
    sql: sql`(case${join(branches, sql``)} else ${values.at(-1)!.sql} end)`,
    type,
    ...(certain && { certain }),
  };
}

const comparing = (op: '==' | '!=' | '<' | '<=' | '>' | '>=') =>
  custom(2, 2, ({ place, args, span }) => bool(compareValues(place, op, args[0]!, args[1]!, false, span)));

const liking = (op: 'like' | 'ilike' | 'not like' | 'not ilike') =>
  custom(2, 2, ({ place, args, span }) => bool(likeTest(place, op, args[0]!, args[1]!, false, span)));

const joined = (kind: 'and' | 'or') =>
  lazy(1, MANY, (place, node) => ({
    sql: printCondition(place, { kind, exprs: node.args }, false),
    type: 'bool',
  }));

/** Declares least or greatest. The result is NULL if any argument is NULL, whereas Postgres ignores NULLs. */
const extreme = (name: Sql) =>
  custom(1, MANY, ({ place, args, span }) => {
    const { values, type } = unifyAll(place, args, span);
    const list = values.map((one) => (type === 'string' ? sql`${one.sql} collate "C"` : one.sql));
    const chosen = sql`${name}(${join(list)})`;
    const doubtful = values.filter((one) => !one.certain);
    if (doubtful.length === 0) return { sql: chosen, type, certain: true };
    return {
      sql: sql`(case when num_nulls(${join(doubtful.map((one) => one.sql))}) = 0 then ${chosen} end)`,
      type,
    };
  });

const coalesce = custom(1, MANY, ({ place, args, span }) => {
  const { values, type } = unifyAll(place, args, span);
  const certain = values.some((one) => one.certain);
  return { sql: sql`coalesce(${join(values.map((one) => one.sql))})`, type, ...(certain && { certain }) };
});

const same = custom(1, 1, ({ args }) => args[0]!);

export const LOGIC: FunctionTable = {
  if: lazy(3, 3, printCase),
  multiIf: lazy(3, MANY, printCase),
  and: joined('and'),
  or: joined('or'),
  not: lazy(1, 1, (place, node) => ({
    sql: sql`(not ${printCondition(place, node.args[0]!, false)})`,
    type: 'bool',
  })),
  xor: lazy(2, MANY, (place, node) => ({
    sql: node.args
      .map((one) => printCondition(place, one, false))
      .reduce((left, right) => sql`(${left} <> ${right})`),
    type: 'bool',
  })),
  equals: comparing('=='),
  notEquals: comparing('!='),
  less: comparing('<'),
  lessOrEquals: comparing('<='),
  greater: comparing('>'),
  greaterOrEquals: comparing('>='),
  like: liking('like'),
  ilike: liking('ilike'),
  notLike: liking('not like'),
  notILike: liking('not ilike'),
  in: lazy(2, 2, (place, node) => ({
    sql: printCondition(
      place,
      { kind: 'compare', op: 'in', left: node.args[0]!, right: node.args[1]! },
      false,
    ),
    type: 'bool',
  })),
  notIn: lazy(2, 2, (place, node) => ({
    sql: printCondition(
      place,
      { kind: 'compare', op: 'not in', left: node.args[0]!, right: node.args[1]! },
      false,
    ),
    type: 'bool',
  })),
  exists: lazy(1, 1, (place, { args: [query], span }) => {
    if (query?.kind !== 'selectQuery' && query?.kind !== 'selectSetQuery') {
      throw fault('exists takes a query: exists(select …)', span);
    }
    return bool(sql`exists (${printSelect(place.printer, query, place.scope).sql})`);
  }),
  coalesce,
  ifNull: coalesce,
  nullIf: custom(2, 2, ({ place, args, span }) => {
    const [value, other] = args as [Value, Value];
    // `nullif` evaluates the value once. Reading a value from a document is the slowest part.
    if (value.type === 'string' && other.type === 'string')
      return { sql: sql`nullif(${value.sql}, ${other.sql})`, type: 'string' };
    const same = compareValues(place, '==', value, other, true, span);
    return { sql: sql`(case when ${same} then null else ${value.sql} end)`, type: value.type };
  }),
  isNull: custom(1, 1, ({ args }) => bool(sql`(${args[0]!.sql} is null)`)),
  isNotNull: custom(1, 1, ({ args }) => bool(sql`(${args[0]!.sql} is not null)`)),
  assumeNotNull: same,
  toNullable: same,
  materialize: same,
  least: extreme(sql`least`),
  greatest: extreme(sql`greatest`),
  min2: extreme(sql`least`),
  max2: extreme(sql`greatest`),
  transform: custom(3, 4, ({ place, args, span }) => {
    const [value, from, to, fallback] = args as [Value, Value, Value, Value | undefined];
    if (!isArray(from.type) || !isArray(to.type)) throw fault('transform needs two arrays', span);
    const element = postgresType(from.type.array);
    const found = sql`(${to.sql})[array_position(${from.sql}, (${value.sql})::${element})]`;
    const otherwise = fallback ?? value;
    const { values, type } = unifyAll(place, [{ sql: found, type: to.type.array }, otherwise], span);
    return {
      sql: sql`(case when array_position(${from.sql}, (${value.sql})::${element}) is null then ${values[1]!.sql} else ${values[0]!.sql} end)`,
      type,
    };
  }),
  tuple: custom(0, MANY, ({ args }) => tupleOf(args)),
  identity: same,
  toBool: custom(1, 1, ({ place, args, span }) => ({
    sql: coerced(place, args[0]!, 'bool', span),
    type: 'bool',
  })),
};
