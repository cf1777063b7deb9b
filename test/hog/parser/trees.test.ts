import { describe, expect, test } from '@jest/globals';
import { build, type Expr, type SelectQuery } from '../../../hog/ast/index.ts';
import { bare, testParser } from './support.ts';

const parser = testParser();
const { access, and, arithmetic, array, between, call, compare, constant, dict, field, float, integer } =
  build;
const { lambda, literal, not, or, tuple } = build;

describe('expressions', () => {
  const cases: [string, Expr][] = [
    ['1', integer(1)],
    ['1.0', float(1)],
    ['-1.0', float(-1)],
    ['- /* 1.5 */ 1', integer(-1)],
    ['-1.', float(-1)],
    ['1e3', float(1000)],
    ['1E3', float(1000)],
    ['0x1E', integer(30)],
    ['.5', float(0.5)],
    ['12345678901234567890', integer(Number('12345678901234567890'))],
    ['inf', float(Number.POSITIVE_INFINITY)],
    ["'it''s'", constant("it's")],
    ['true', constant(true)],
    ['null', constant(null)],
    ['a.b.`c d`', field('a', 'b', 'c d')],
    ['a[1]', access(field('a'), integer(1))],
    ["a?.b['c']", access(access(field('a'), constant('b'), true), constant('c'))],
    ['a.1', { kind: 'tupleAccess', tuple: field('a'), index: 1, nullish: false }],
    ['a[1:2]', { kind: 'arraySlice', array: field('a'), from: integer(1), to: integer(2) }],
    ['a and b and c', and([field('a'), field('b'), field('c')])],
    ['a or not b', or([field('a'), not(field('b'))])],
    ['a + 1 * b', arithmetic('+', field('a'), arithmetic('*', integer(1), field('b')))],
    ['-x', arithmetic('-', integer(0), field('x'))],
    ["a not ilike 'x'", compare('not ilike', field('a'), constant('x'))],
    ["a ~* 'x'", compare('=~*', field('a'), constant('x'))],
    ['a in cohort 5', compare('in cohort', field('a'), integer(5))],
    ['a is null', { ...compare('==', field('a'), constant(null)), isNullStyle: true }],
    ['a not between 1 and 2', between(field('a'), integer(1), integer(2), true)],
    ['a ? b : c', call('if', field('a'), field('b'), field('c'))],
    [
      'case a when 1 then b when 2 then c end',
      call(
        'multiIf',
        compare('==', field('a'), integer(1)),
        field('b'),
        compare('==', field('a'), integer(2)),
        field('c'),
        constant(null),
      ),
    ],
    ['a ?? b', call('ifNull', field('a'), field('b'))],
    ["a || 'x' || b", call('concat', field('a'), constant('x'), field('b'))],
    ["f'a {b} c'", call('concat', constant('a '), field('b'), constant(' c'))],
    ['[1, a]', array([integer(1), field('a')])],
    ['(1, a)', tuple([integer(1), field('a')])],
    ["{'k': v}", dict([[constant('k'), field('v')]])],
    ['(a, b) -> a', lambda(['a', 'b'], field('a'))],
    ['f(1)(2)', { ...call('f', integer(2)), params: [integer(1)] }],
    ['f(distinct x)', { ...call('f', field('x')), distinct: true }],
    ['a.b(1)', { kind: 'exprCall', callee: field('a', 'b'), args: [integer(1)] }],
    ['a is distinct from b', { kind: 'isDistinctFrom', left: field('a'), right: field('b'), negated: false }],
    ['{a}', { kind: 'placeholder', expr: field('a') }],
    ['cast(a as Int)', { kind: 'typeCast', expr: field('a'), typeName: 'int' }],
    ['try_cast(a as Int)', { kind: 'tryCast', expr: field('a'), typeName: 'int' }],
    ['a as b', { kind: 'alias', alias: 'b', expr: field('a') }],
    ['f(a := 1)', call('f', { kind: 'namedArgument', name: 'a', value: integer(1) })],
    ['#2', { kind: 'positionalRef', index: 2 }],
    [
      "<T a='x'>{b}</T>",
      {
        kind: 'tag',
        name: 'T',
        attributes: [
          { kind: 'tagAttribute', name: 'a', value: constant('x') },
          { kind: 'tagAttribute', name: 'children', value: [field('b')] },
        ],
      },
    ],
  ];
  test.each(cases)('%s', async (source, expected) => {
    expect(bare(await parser.expression(source))).toEqual(bare(expected));
  });

  test('literal gives what the parser gives for the same number', async () => {
    expect(bare(await parser.expression('1.5'))).toEqual(bare(literal(1.5)));
    expect(bare(await parser.expression('7'))).toEqual(bare(literal(7)));
  });

  test('columns, spreads and windows', async () => {
    const query = (await parser.select(
      "select columns('x.*'), * exclude (a), columns(* replace (1 as b)), *columns(c), " +
        'sum(x) over (partition by y order by z desc rows between 1 preceding and current row), f() over w ' +
        'from t window w as (order by q)',
    )) as SelectQuery;
    expect(query.select.map((one) => one.kind)).toEqual([
      'columns',
      'columns',
      'columns',
      'spread',
      'windowFunction',
      'windowFunction',
    ]);
    expect(bare(query.select[0])).toMatchObject({ regex: 'x.*' });
    expect(bare(query.select[1])).toMatchObject({ all: true, exclude: ['a'] });
    expect(bare(query.select[2])).toMatchObject({ replace: [['b', integer(1)]] });
    expect(bare(query.select[4])).toMatchObject({
      over: { frameMethod: 'ROWS', frameStart: { frameType: 'PRECEDING', frameValue: 1 } },
    });
    expect(bare(query.select[5])).toMatchObject({ overName: 'w' });
    expect(query.windows.map(([name]) => name)).toEqual(['w']);
  });
});

describe('selects', () => {
  test('every clause has its place', async () => {
    const query = (await parser.select(
      'with c as (select 1), 2 as d select distinct a as b from t as x final sample 1/10 offset 1/2 ' +
        'left join u on x.a = u.a cross join v array join l as m where w = 1 group by g, h having i ' +
        'order by j desc, k limit 10 offset 5',
    )) as SelectQuery;
    expect(bare(query)).toMatchObject({
      kind: 'selectQuery',
      ctes: [
        { name: 'c', cteType: 'subquery' },
        { name: 'd', cteType: 'column' },
      ],
      distinct: true,
      select: [{ kind: 'alias', alias: 'b' }],
      from: {
        joinType: null,
        alias: 'x',
        final: true,
        sample: { value: { left: integer(1), right: integer(10) }, offset: { right: integer(2) } },
        next: {
          joinType: 'LEFT JOIN',
          constraint: { constraintType: 'ON' },
          next: { joinType: 'CROSS JOIN', next: null },
        },
      },
      arrayJoin: { operator: 'ARRAY JOIN', list: [{ alias: 'm' }] },
      where: { kind: 'compare' },
      groupBy: [field('g'), field('h')],
      having: field('i'),
      orderBy: [
        { order: 'DESC', expr: field('j') },
        { order: 'ASC', expr: field('k') },
      ],
      limit: integer(10),
      offset: integer(5),
    });
  });

  test.each([
    [
      'select 1 union all select 2 except select 3',
      { kind: 'selectSetQuery', rest: [{ operator: 'UNION ALL' }, {}] },
    ],
    ['select 1 limit 1 by z', { limitBy: { n: integer(1), exprs: [field('z')] } }],
    ['select 1 group by rollup(a)', { groupByMode: 'rollup' }],
    ['select 1 group by grouping sets ((a), (b))', { groupBy: [{ kind: 'groupingSet' }, {}] }],
    ['select 1 group by all', { groupByMode: 'all' }],
    ['select 1 from t limit 5 with ties', { limitWithTies: true }],
    ['select 1 from t limit 5%', { limitPercent: true }],
    [
      'select a from (values (1, 2)) as t(x, y)',
      { from: { table: { kind: 'valuesQuery' }, columnAliases: ['x', 'y'] } },
    ],
    ['select 1 from numbers(3)', { from: { table: field('numbers'), tableArgs: [integer(3)] } }],
    [
      'select 1 from a pivot (sum(x) for y in (1))',
      { from: { table: { kind: 'pivot', table: field('a') } } },
    ],
    [
      'select 1 from a unpivot (x for y in (b))',
      { from: { table: { kind: 'unpivot', includeNulls: false } } },
    ],
    [
      'select 1 order by a with fill from 1 to 2',
      { orderBy: [{ withFill: { from: integer(1), step: null } }] },
    ],
    [
      'with recursive a(x) as materialized (select 1) select 1',
      { ctes: [{ recursive: true, materialized: true, columns: ['x'] }] },
    ],
    ['{a}', { kind: 'placeholder' }],
    ['select 1 qualify x', { qualify: field('x') }],
    ['select count() filter (where y) from t', { select: [{ filter: field('y') }] }],
    [
      'select q(0.5)(x order by z) from t',
      { select: [{ params: [float(0.5)], orderBy: [{ order: 'ASC' }] }] },
    ],
  ])('%s', async (source, shape) => {
    expect(bare(await parser.select(source))).toMatchObject(shape);
  });
});

describe('programs', () => {
  test('every statement', async () => {
    const program = await parser.program(`
      let a := 1; let b; a := 2; a.b := 3; a[1].c := 4;
      if (a) return 1 else { return }
      while (a) b;
      for (let i := 0; i < 3; i := i + 1) print(i)
      for (;;) {}
      for (let v in a) {}
      for (let k, v in a) {}
      fun f(x, y) { return x }
      throw Error('x')
      try { a } catch (e: Foo) {} catch (g) {} catch {} finally { b }
      { 1 }
    `);
    expect(program.declarations.map((one) => one.kind)).toEqual([
      'variableDeclaration',
      'variableDeclaration',
      'variableAssignment',
      'variableAssignment',
      'variableAssignment',
      'ifStatement',
      'whileStatement',
      'forStatement',
      'forStatement',
      'forInStatement',
      'forInStatement',
      'function',
      'throwStatement',
      'tryStatement',
      'block',
    ]);
    expect(bare(program.declarations[10])).toMatchObject({ keyVar: 'k', valueVar: 'v' });
    expect(bare(program.declarations[13])).toMatchObject({
      catches: [
        { variable: 'e', type: 'Foo' },
        { variable: 'g', type: null },
        { variable: null, type: null },
      ],
      finallyBody: { kind: 'block' },
    });
    expect(bare(program.declarations[5])).toMatchObject({ consequent: { kind: 'returnStatement' } });
  });
});

test('a lone semicolon is a body without statements', async () => {
  const program = await parser.program('if (a); while (b);');
  expect(bare(program.declarations[0])).toMatchObject({ consequent: { kind: 'block', declarations: [] } });
  expect(bare(program.declarations[1])).toMatchObject({ body: { kind: 'block', declarations: [] } });
});

describe('templates', () => {
  test.each<[string, Expr]>([
    ['', constant('')],
    ['plain', constant('plain')],
    ['{event}', field('event')],
    ["it's {a.b}!", call('concat', constant("it's "), field('a', 'b'), constant('!'))],
    ['\\{no} {1.0}', call('concat', constant('{no} '), float(1))],
    ["a {f'b {2.0}'}", call('concat', constant('a '), call('concat', constant('b '), float(2)))],
  ])('%s', async (source, expected) => {
    expect(bare(await parser.template(source))).toEqual(bare(expected));
  });
});

describe('spans', () => {
  test('count UTF-16 units, also after characters outside the basic plane', async () => {
    const source = "'é😀😀' || 1.0 || x";
    const tree = await parser.expression(source);
    const parts = tree.kind === 'call' ? tree.args : [];
    expect(parts.map((part) => source.slice(part.span?.start, part.span?.end))).toEqual([
      "'é😀😀'",
      '1.0',
      'x',
    ]);
  });

  test('in templates count from the start of the raw text', async () => {
    const tree = await parser.template('😀 {a.b} {3.0}');
    const parts = tree.kind === 'call' ? tree.args : [];
    expect(parts[1]?.span).toEqual({ start: 4, end: 7 });
    expect(bare(parts[3])).toEqual(float(3));
  });

  test('trees are frozen, lists included', async () => {
    const tree = await parser.expression('f(a, [1, 2])');
    expect(Object.isFrozen(tree)).toBe(true);
    expect(tree.kind === 'call' && Object.isFrozen(tree.args) && Object.isFrozen(tree.args[1])).toBe(true);
  });
});
