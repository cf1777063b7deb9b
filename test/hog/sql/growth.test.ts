// Every function says whether its result can be much larger than its arguments, and those that can are bounded.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import type { SelectNode } from '../../../hog/ast/index.ts';
import { createParser } from '../../../hog/parser/index.ts';
import {
  AGGREGATES,
  BOUNDED,
  createSchema,
  FUNCTIONS,
  printStatement,
  selection,
  UNBOUNDED,
  WINDOW_FUNCTIONS,
} from '../../../hog/sql/index.ts';
import { PATIENCE } from '../../support/eventually.ts';

const parser = createParser({ timeoutMs: PATIENCE });
afterAll(() => parser.close());

const names = [
  ...new Set([...Object.keys(FUNCTIONS), ...Object.keys(AGGREGATES), ...Object.keys(WINDOW_FUNCTIONS)]),
];
const folder = path.join(import.meta.dirname, 'cases');
const sources = readdirSync(folder).flatMap((file) =>
  (JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as [string, unknown][]).map(
    ([source]) => source,
  ),
);

const BOUNDS =
  /hq\.(?:within|listed|repeat|lpad|rpad|replace|regexp_replace|array_to_string|range|total_of_\w+)\(/;

/** Prints a case. Returns whether it has a bound. */
async function isBounded(source: string): Promise<boolean> {
  const query = /^\s*(?:select|with|\()/i.test(source)
    ? ((await parser.select(source)) as SelectNode)
    : selection({ table: 'events', select: [await parser.expression(source)] });
  const options = { schema: createSchema('current'), projectId: 1, timezone: 'UTC', source };
  return BOUNDS.test(printStatement(query, options).text);
}

test('every function, aggregate and window function is listed once', () => {
  expect(names.filter((name) => BOUNDED.has(name) === UNBOUNDED.has(name))).toEqual([]);
  expect([...BOUNDED, ...UNBOUNDED].filter((name) => !names.includes(name))).toEqual([]);
});

test('what is listed as bounded is printed with its bound', async () => {
  const wrong: string[] = [];
  for (const name of BOUNDED) {
    const called = new RegExp(`(?<![\\w$])${name}(?:If)?\\(`);
    const source = sources.find((one) => called.test(one));
    // Another name of the same function is covered by it.
    if (source !== undefined && !(await isBounded(source))) wrong.push(source);
  }
  expect(wrong).toEqual([]);
});
