// Compiles a filter document of 50 conditions for each back end, and for all three. It is part of `npm run bench --
// hog`, and also runs alone with node bench/hog/filter-bench.ts.

import { build } from '../../hog/ast/index.ts';
import { compileBytecode } from '../../hog/bytecode/index.ts';
import { compileJavaScript } from '../../hog/javascript/index.ts';
import { createSchema, printStatement, selection } from '../../hog/sql/index.ts';
import { filterExpression, prepareMatcher, readFilters } from '../../properties/index.ts';

const OPERATORS: [string, unknown][] = [
  ['exact', 'pro'],
  ['is_not', 'free'],
  ['icontains', 'docs'],
  ['not_icontains', '@example.com'],
  ['regex', '^https?://'],
  ['gt', 5],
  ['lte', 100],
  ['is_set', null],
  ['exact', ['a', 'b', 'c']],
  ['is_date_after', '-7d'],
];
const document = Array.from({ length: 50 }, (_, index) => {
  const [operator, value] = OPERATORS[index % OPERATORS.length] as [string, unknown];
  return { key: `property_${index}`, type: index % 3 === 0 ? 'person' : 'event', operator, value };
});
const moment = { now: Date.parse('2026-03-15T12:00:00Z'), timezone: 'UTC' };
const schema = createSchema('on event');

const expression = (scope: 'realtime' | 'events') =>
  filterExpression(readFilters(document), { moment, scope });
const toBytecode = () => compileBytecode(expression('realtime'));
const toJavaScript = () => compileJavaScript(expression('realtime')).evaluator();
const toSql = () =>
  printStatement(selection({ table: 'events', select: [build.field('uuid')], where: expression('events') }), {
    schema,
    projectId: 1,
    timezone: 'UTC',
  });

const WORK: [string, () => unknown][] = [
  ['read and build the tree', () => expression('realtime')],
  ['to bytecode', toBytecode],
  ['to JavaScript', toJavaScript],
  ['to SQL', toSql],
  ['to a matcher', () => prepareMatcher(readFilters(document), 'filter')],
  ['bytecode, JavaScript and SQL', () => [toBytecode(), toJavaScript(), toSql()]],
];

/** Measures each step in milliseconds: the median of 300 runs, after 200 to warm up. */
export function measureDocument(): Record<string, number> {
  const medians: Record<string, number> = {};
  for (const [name, work] of WORK) {
    for (let i = 0; i < 200; i++) work();
    const times: number[] = [];
    for (let i = 0; i < 300; i++) {
      const start = performance.now();
      work();
      times.push(performance.now() - start);
    }
    times.sort((left, right) => left - right);
    medians[name] = Number((times[150] as number).toFixed(3));
  }
  return medians;
}

if (import.meta.main) console.log('50 conditions, in ms:', measureDocument());
