import { expect, test } from '@jest/globals';
import { testParser } from './support.ts';

const parser = testParser();

test.each([
  ['select 1 from t group by a with totals', 'WITH TOTALS'],
  ['select 1 from t group by a WITH\n rollup having a > 1', 'WITH ROLLUP'],
  ['select * from (select 1 from t group by a with cube)', 'WITH CUBE'],
  ['select 1 from t group by a with /* all */ totals order by a', 'WITH TOTALS'],
  ['select 1 from t group by a with totals union all select 1 from t', 'WITH TOTALS'],
  ['select a from t order by a nulls first', 'NULLS FIRST'],
  ['select a from t order by f(a) desc nulls first, b', 'NULLS FIRST'],
  ['(select a from t) order by a', 'ORDER BY after a query in parentheses'],
  ['select a from t union all (select a from t) order by a', 'ORDER BY after a query in parentheses'],
  ['((select a from t) union all (select a from t)) order by a limit 1', 'ORDER BY after a query'],
])('%s is refused', async (source, what) => {
  await expect(parser.select(source)).rejects.toMatchObject({
    code: 'unsupported',
    line: expect.any(Number),
  });
  await expect(parser.select(source)).rejects.toThrow(what);
});

test('so it is inside of an expression', async () => {
  await expect(parser.expression('a in (select 1 from t group by a with totals)')).rejects.toThrow(
    'WITH TOTALS',
  );
});

test.each([
  'with totals as (select 1 from t) select * from totals',
  'with 1 as totals select totals from t',
  'select rollup, cube, totals from t',
  'select 1 from t group by rollup(a)',
  'select a from t order by a nulls last',
  'select a from t order by nulls',
  'select a from (select a from t) order by a',
  'select a from t where a in (select a from t) order by a',
  'select row_number() over (order by a) from t group by (a) order by a',
  "select 'with totals' from t -- nulls first",
])('%s is taken', async (source) => {
  await expect(parser.select(source)).resolves.toMatchObject({ kind: 'selectQuery' });
});
