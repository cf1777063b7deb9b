// What functions and queries give on a real Postgres, against results of ClickHouse (checked there where it has
// the same function, by the rules of HogQL for missing values).
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import type { SelectNode } from '../../../hog/ast/index.ts';
import { createParser } from '../../../hog/parser/index.ts';
import {
  AGGREGATES,
  createSchema,
  FUNCTIONS,
  printStatement,
  type Statement,
  selection,
  type Type,
  WINDOW_FUNCTIONS,
} from '../../../hog/sql/index.ts';
import { PATIENCE } from '../../support/eventually.ts';
import { eventsDatabase } from './database.ts';
import { PROJECT } from './tables.ts';
import { insertWorld } from './world.ts';

type Case = [source: string, gives: unknown];

const read = (name: string): Case[] =>
  JSON.parse(readFileSync(path.join(import.meta.dirname, 'cases', `${name}.json`), 'utf8')) as Case[];

const EXPRESSIONS = [
  ...['logic', 'conversion', 'strings', 'urls', 'json', 'dates', 'zones', 'math', 'arrays', 'more'],
];
const parser = createParser({ timeoutMs: PATIENCE });
afterAll(() => parser.close());

const OPTIONS = { schema: createSchema('current'), projectId: PROJECT, timezone: 'UTC' };

/** Whole numbers come as text from the driver, as they may be larger than a double. */
function plain(value: unknown, type: Type): unknown {
  if (value === null) return null;
  if (type === 'int' || type === 'float') return Number(value);
  if (typeof type === 'object' && 'array' in type)
    return (value as unknown[]).map((one) => plain(one, type.array));
  return value;
}

describe('on Postgres', () => {
  const database = eventsDatabase();

  async function rowsOf(statement: Statement): Promise<unknown[][]> {
    const rows = await database.query(statement);
    return rows.map((row) => row.map((value, index) => plain(value, statement.columns[index]!.type)));
  }

  async function wrongOnes(cases: Case[], run: (source: string) => Promise<unknown>): Promise<unknown[]> {
    const wrong: unknown[] = [];
    for (const [source, gives] of cases) {
      const got = await run(source).catch((error: Error) => error.message);
      if (JSON.stringify(got) !== JSON.stringify(gives)) wrong.push({ source, got, gives });
    }
    return wrong;
  }

  test.each(EXPRESSIONS)('%s', async (name) => {
    const wrong = await wrongOnes(read(name), async (source) => {
      const query = {
        ...selection({ table: 'events', select: [await parser.expression(source)] }),
        from: null,
      };
      return (await rowsOf(printStatement(query, { ...OPTIONS, source })))[0]![0];
    });
    expect(wrong).toEqual([]);
  });

  test('aggregates', async () => {
    await insertWorld(database.client());
    const event = await parser.expression("event = 'e'");
    const wrong = await wrongOnes(read('aggregates'), async (source) => {
      const query = selection({ table: 'events', select: [await parser.expression(source)], where: event });
      return (await rowsOf(printStatement(query, { ...OPTIONS, source })))[0]![0];
    });
    expect(wrong).toEqual([]);
  });

  test('queries', async () => {
    await insertWorld(database.client());
    const wrong = await wrongOnes(read('queries'), async (source) =>
      rowsOf(printStatement((await parser.select(source)) as SelectNode, { ...OPTIONS, source })),
    );
    expect(wrong).toEqual([]);
  });
});

test('every function and aggregate has a case', () => {
  const sources = [...EXPRESSIONS, 'aggregates', 'queries']
    .flatMap(read)
    .map(([source]) => source)
    .join('\n');
  const called = (name: string) => new RegExp(`(?<![\\w$])${name}(?:If)?\\(`, 'i').test(sources);
  const operators = new Set(['if', 'multiIf', 'materialize', 'identity']);
  const names = [...Object.keys(FUNCTIONS), ...Object.keys(AGGREGATES), ...Object.keys(WINDOW_FUNCTIONS)];
  const without = names.filter((name) => !called(name) && !operators.has(name));
  const implementation = (name: string) => FUNCTIONS[name] ?? AGGREGATES[name] ?? WINDOW_FUNCTIONS[name];
  // Another name of a function that has one is covered by it.
  const covered = new Set(names.filter(called).map(implementation));
  expect(without.filter((name) => !covered.has(implementation(name)))).toEqual([]);
});
