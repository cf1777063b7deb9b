// Syntax trees with hostile texts wherever a tree can have text.
import fc from 'fast-check';
import { build, type Expr, type SelectQuery } from '../../../hog/ast/index.ts';
import { AGGREGATES, FUNCTIONS, selection } from '../../../hog/sql/index.ts';

/** Stands in every hostile text. */
export const MARK = 'zq9';

const HOSTILE = [
  `'; drop table events; -- ${MARK}`,
  `" or 1=1 -- ${MARK}`,
  `${MARK}') union select * from persons --`,
  `${MARK}$1$2::text`,
  `$${MARK}$`,
  `\\'${MARK}`,
  `E'\\${MARK}`,
  `/*${MARK}*/`,
  `${MARK}\n;select pg_sleep(100)`,
  `pg_catalog.pg_class ${MARK}`,
  `project_id ${MARK}`,
  `${MARK}\u0000`,
  `\ud800${MARK}`,
  `${MARK}%_\\`,
  `${MARK}"; --`,
  `constructor${MARK}`,
];
const PLAIN = [
  'event',
  'properties',
  'person',
  'timestamp',
  'uuid',
  'x',
  '*',
  '__proto__',
  'constructor',
  'group_0',
  'key',
];

const hostile = fc.constantFrom(...HOSTILE);
const name = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...PLAIN) }, hostile);
const callable = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...Object.keys(FUNCTIONS), ...Object.keys(AGGREGATES)) },
  hostile,
);

const constantNode: fc.Arbitrary<Expr> = fc.oneof(
  hostile.map((text) => build.constant(text)),
  fc.constantFrom<Expr>(
    build.constant(null),
    build.constant(true),
    build.integer(0),
    build.integer(-1),
    build.integer(3),
    build.float(1.5),
    build.float(Number.NaN),
    build.float(Number.POSITIVE_INFINITY),
    build.integer(2 ** 53),
    build.constant('day'),
    build.constant('2024-01-02'),
    build.constant('[a-z]+(x|y)*?'),
    build.constant('{"a":[1]}'),
    build.constant(''),
  ),
);

const OPERATORS = [
  '==',
  '!=',
  '<',
  '>=',
  'in',
  'not in',
  'like',
  'not ilike',
  '=~',
  '!~*',
  'in cohort',
] as const;

export const { expr } = fc.letrec<{ expr: Expr }>((tie) => ({
  expr: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    constantNode,
    fc.array(name, { minLength: 1, maxLength: 3 }).map((chain): Expr => build.field(...chain)),
    fc
      .tuple(callable, fc.array(tie('expr'), { maxLength: 3 }))
      .map(([to, args]): Expr => build.call(to, ...args)),
    fc
      .tuple(fc.constantFrom(...OPERATORS), tie('expr'), tie('expr'))
      .map(([op, left, right]): Expr => build.compare(op, left, right)),
    fc.array(tie('expr'), { maxLength: 3 }).map((exprs): Expr => build.array(exprs)),
    fc.array(tie('expr'), { minLength: 1, maxLength: 3 }).map((exprs): Expr => build.tuple(exprs)),
    fc.tuple(tie('expr'), tie('expr')).map(([a, b]): Expr => build.and([a, build.not(b)])),
    fc.tuple(tie('expr'), tie('expr')).map(([a, b]): Expr => build.arithmetic('+', a, b)),
    fc.tuple(tie('expr'), tie('expr')).map(([a, b]): Expr => build.access(a, b)),
    fc.tuple(tie('expr'), hostile).map(([a, typeName]): Expr => ({ kind: 'typeCast', expr: a, typeName })),
    fc
      .tuple(name, tie('expr'), tie('expr'))
      .map(([parameter, body, list]): Expr => build.call('arrayMap', build.lambda([parameter], body), list)),
    fc.tuple(tie('expr'), hostile).map(([a, alias]): Expr => ({ kind: 'alias', alias, expr: a })),
  ),
}));

export const query: fc.Arbitrary<SelectQuery> = fc
  .record({
    select: fc.array(fc.tuple(expr, name), { minLength: 1, maxLength: 2 }),
    where: fc.option(expr),
    table: fc.oneof({ weight: 5, arbitrary: fc.constantFrom('events', 'persons', 'sessions') }, hostile),
    alias: fc.option(name),
    groupBy: fc.option(fc.array(expr, { maxLength: 2 })),
    joinType: fc.oneof(fc.constantFrom('LEFT JOIN', 'JOIN', 'CROSS JOIN'), hostile),
    joined: fc.option(fc.tuple(name, expr)),
  })
  .map(({ select, where, table, alias, groupBy, joinType, joined }): SelectQuery => {
    const base = selection({
      table,
      select: select.map(([one, called]) => ({ kind: 'alias', alias: called, expr: one })),
      where,
    });
    const from = { ...base.from!, alias };
    const next = joined && {
      ...base.from!,
      joinType,
      alias: joined[0],
      constraint: { kind: 'joinConstraint' as const, constraintType: 'ON' as const, expr: joined[1] },
    };
    return { ...base, groupBy, from: { ...from, next: next ?? null } };
  });
