// The functions of HogQL are a part of the second wall: the setting that names the project can be changed by a function,
// and so can anything that a text of SQL can do. So none that is printed may change a setting or run a text.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ofProject } from '../../../db/roles/project-setting.ts';
import { CLOSED } from '../../../db/roles/readable.ts';
import type { SelectNode } from '../../../hog/ast/index.ts';
import { createParser } from '../../../hog/parser/index.ts';
import { createSchema, printStatement, type Statement, selection } from '../../../hog/sql/index.ts';
import { databaseForFile } from '../../support/database.ts';
import { PATIENCE } from '../../support/eventually.ts';
import { LONG, rounds } from '../../support/rounds.ts';
import { PROJECT } from './tables.ts';

const CASES = path.join(import.meta.dirname, 'cases');
const SOURCES = path.join(import.meta.dirname, '../../../hog/sql');
const OPTIONS = { schema: createSchema('current'), projectId: PROJECT, timezone: 'UTC' };

/** Words of SQL before a parenthesis, and expressions of Postgres that are no functions. */
const GRAMMAR = new Set(
  'all and any array as between by case cast coalesce distinct else end except exists extract filter from greatest group having in intersect join lateral least like ilike not nullif numeric on or order over partition row select similar then union using values when where with within'.split(
    ' ',
  ),
);
/** Volatile functions: each call can give something else. They read a clock or make random numbers, and do nothing else. */
const VOLATILE = new Set(['random', 'gen_random_uuid', 'clock_timestamp']);

const database = databaseForFile();
const parser = createParser({ timeoutMs: PATIENCE });
afterAll(() => parser.close());
const statements: Statement[] = [];

beforeAll(async () => {
  // Whatever is called is called by one of the texts that are taken.
  const called = new Set<string>();
  for (const file of readdirSync(CASES)) {
    const isQuery = file === 'queries.json';
    const cases = JSON.parse(readFileSync(path.join(CASES, file), 'utf8')) as [string, unknown][];
    for (const [source] of cases) {
      const isNew = calledIn(source).filter((name) => !called.has(name) && called.add(name)).length > 0;
      if (!isQuery && !isNew && !LONG) continue;
      try {
        const whole = isQuery
          ? ((await parser.select(source)) as SelectNode)
          : selection({ table: 'events', select: [await parser.expression(source)] });
        statements.push(printStatement(whole, { ...OPTIONS, source }));
      } catch {
        // Some cases are errors of HogQL, which print nothing.
      }
    }
  }
});

/** The names that stand before a parenthesis. */
function calledIn(text: string): string[] {
  const found = text.matchAll(/(?<![\w$'])((?:\w+\.)?[a-z_]\w*)\s*\(/gi);
  return [...found].map((match) => (match[1] as string).toLowerCase().replace(/^.*\./, ''));
}

/** The SQL in the templates of the printer, with what they insert taken out. */
function templates(): string[] {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  return files.flatMap((file) => {
    const source = readFileSync(path.join(SOURCES, file), 'utf8');
    return [...source.matchAll(/\bsql`((?:[^`\\]|\\.)*)`/g)].map((match) =>
      (match[1] as string).replace(/\$\{[^}]*\}/g, ' x '),
    );
  });
}

interface Routine {
  name: string;
  schema: string;
  volatility: string;
  language: string;
  kind: string;
  source: string;
  definer: boolean;
}

async function routines(names: readonly string[]): Promise<Routine[]> {
  const { rows } = await database.pool.query<Routine>(
    `select p.proname as name, n.nspname as schema, p.provolatile as volatility, l.lanname as language, p.prokind as kind,
       p.prosrc as source, p.prosecdef as definer
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
     where p.proname = any($1) order by 1`,
    [names],
  );
  return rows;
}

test('no function that can be printed changes a setting or runs a text', async () => {
  expect(statements.length).toBeGreaterThan(rounds(300, 600));
  const called = new Set([...statements.map(({ text }) => text), ...templates()].flatMap(calledIn));
  const names = [...called].filter((name) => !GRAMMAR.has(name));
  // What functions of ours call counts as well.
  const inner = await database.pool.query<{ source: string }>(
    "select prosrc as source from pg_proc where pronamespace = 'hq'::regnamespace",
  );
  for (const { source } of inner.rows) {
    expect(source).not.toMatch(/\bexecute\b|\bset_config\b|\bperform\b(?! hq\.)/i);
    names.push(...calledIn(source).filter((name) => !GRAMMAR.has(name)));
  }
  const found = await routines([...new Set(names)]);
  // The search for names finds functions.
  expect(new Set(found.map(({ name }) => name)).size).toBeGreaterThan(150);
  const closed = new RegExp(`^(${CLOSED.join('|')})$`);
  const suspects = found.filter(
    ({ name, schema, volatility, language, definer }) =>
      closed.test(name) ||
      definer ||
      /^current_setting$|^pg_read|^pg_ls|^pg_reload|^pg_rotate|^nextval$|^setval$/.test(name) ||
      !['pg_catalog', 'hq', 'public'].includes(schema) ||
      (volatility === 'v' && !VOLATILE.has(name)) ||
      (schema === 'pg_catalog' ? !['internal', 'c', 'sql'].includes(language) : volatility === 'v'),
  );
  expect(suspects).toEqual([]);
});

test('the reader may call all of them, and afterwards every setting is as before', async () => {
  const client = await database.reader.connect();
  const settings = async () =>
    (await client.query('select name, setting from pg_settings order by name')).rows as unknown;
  const [[name, value]] = Object.entries(ofProject(PROJECT)) as [[string, string]];
  const denied: string[] = [];
  let succeeded = 0;
  try {
    // The language of some functions has settings, which are there once it is loaded.
    await client.query("select hq.to_int('1')");
    const before = await settings();
    for (const { text, values } of statements) {
      await client.query(`begin; set local ${name} = '${value}'`);
      try {
        await client.query(text, values);
        const { rows } = await client.query('select current_setting($1) as project', [name]);
        expect([text, rows[0].project]).toEqual([text, value]);
        succeeded += 1;
      } catch (error) {
        // Some cases are errors of Postgres.
        if ((error as { code?: string }).code === '42501')
          denied.push(`${(error as Error).message}: ${text}`);
        else if ((error as { code?: string }).code === undefined) throw error;
      }
      await client.query('rollback');
    }
    expect(denied).toEqual([]);
    expect(succeeded).toBeGreaterThan(statements.length * 0.9);
    expect(await settings()).toEqual(before);
  } finally {
    client.release();
  }
});
