// Nothing of a source reaches the text of the SQL, whatever stands in it; and whatever is printed is one query
// over the project's own rows. The generators put hostile texts wherever a tree or a source can have text.
import { afterAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { SelectNode } from '../../../hog/ast/index.ts';
import { build } from '../../../hog/ast/index.ts';
import { SourceError } from '../../../hog/errors.ts';
import { createParser } from '../../../hog/parser/index.ts';
import {
  createSchema,
  type PrintOptions,
  printStatement,
  type Statement,
  selection,
} from '../../../hog/sql/index.ts';
import { PATIENCE } from '../../support/eventually.ts';
import { rounds } from '../../support/rounds.ts';
import { eventsDatabase } from './database.ts';
import { expr, MARK, query } from './hostile-trees.ts';
import { OTHER_PROJECT, PROJECT } from './tables.ts';
import { insertWorld } from './world.ts';

const SEED = 20_261_121;
const QUERIES = rounds(1_000, 20_000);
const EXPRESSIONS = rounds(4_000, 80_000);
const PLANS = rounds(250, 5_000);
const OPTIONS: PrintOptions = { schema: createSchema('current'), projectId: PROJECT, timezone: 'UTC' };

/** The statement, or nothing if the query was refused with an error of ours. */
function attempt(node: SelectNode): Statement | null {
  try {
    return printStatement(node, OPTIONS);
  } catch (error) {
    if (error instanceof SourceError) return null;
    throw error;
  }
}

/** Everything in the text is of our making: words, numbers, our quoted names and a few quoted texts. */
function checkText({ text, values }: Statement): void {
  if (text.includes(MARK) || text.includes('--') || text.includes('/*') || text.includes(';')) {
    throw new Error(`a part of the source is in the SQL: ${text}`);
  }
  const numbers = [...text.matchAll(/\$(\d+)::/g)].map((found) => Number(found[1]));
  if (new Set(numbers).size !== values.length || Math.max(0, ...numbers) !== values.length) {
    throw new Error(`${values.length} parameters do not fit: ${text}`);
  }
}

interface Plan {
  'Relation Name'?: string;
  Schema?: string;
  Filter?: string;
  Plans?: Plan[];
}

const TABLES = new Set(['events', 'persons', 'person_distinct_ids', 'groups', 'sessions', 'cohort_people']);

/** Every table that is read is one of ours, and read for this project only. */
function checkPlan(plan: Plan): number {
  const table = plan['Relation Name'];
  if (table !== undefined) {
    if (plan.Schema !== 'hogql' || !TABLES.has(table)) throw new Error(`${plan.Schema}.${table} is read`);
    if (!plan.Filter?.includes(`project_id = '${PROJECT}'::bigint`)) {
      throw new Error(`${table} is read without the project's condition: ${plan.Filter}`);
    }
  }
  return (plan.Plans ?? []).reduce((sum, one) => sum + checkPlan(one), table === undefined ? 0 : 1);
}

test('trees full of hostile texts: none of it is in the SQL, and only typed errors are thrown', () => {
  let printed = 0;
  fc.assert(
    fc.property(query, (node) => {
      const statement = attempt(node);
      if (!statement) return;
      printed++;
      checkText(statement);
    }),
    { seed: SEED, numRuns: QUERIES },
  );
  fc.assert(
    fc.property(expr, (one) => {
      const statement = attempt(selection({ table: 'events', select: [one] }));
      if (!statement) return;
      printed++;
      checkText(statement);
    }),
    { seed: SEED, numRuns: EXPRESSIONS },
  );
  // Otherwise the generators would prove nothing.
  expect(printed).toBeGreaterThan((QUERIES + EXPRESSIONS) / 13);
});

describe('on Postgres', () => {
  const database = eventsDatabase();
  const parser = createParser({ timeoutMs: PATIENCE });
  afterAll(() => parser.close());

  async function plan(statement: Statement): Promise<number> {
    const rows = await database.query({
      text: `explain (verbose, format json) ${statement.text}`,
      values: statement.values,
    });
    return checkPlan((rows[0]![0] as { Plan: Plan }[])[0]!.Plan);
  }

  test('what is printed is one query over the project’s tables, and prepared without complaint', async () => {
    const nodes = [
      ...fc.sample(query, { seed: SEED + 1, numRuns: 2 * PLANS }),
      ...fc
        .sample(fc.tuple(expr, expr), { seed: SEED + 2, numRuns: 5 * PLANS })
        .flatMap(([one, other]) => [
          selection({ table: 'events', select: [one] }),
          selection({ table: 'events', select: [build.field('event')], where: one }),
          selection({ table: 'persons', select: [one, other], orderBy: [{ expr: one, order: 'ASC' }] }),
        ]),
    ];
    const complaints: string[] = [];
    let planned = 0;
    let scans = 0;
    for (const node of nodes) {
      const statement = attempt(node);
      if (!statement || planned >= PLANS) continue;
      planned++;
      try {
        scans += await plan(statement);
      } catch (error) {
        complaints.push(`${(error as Error).message}: ${statement.text} ${JSON.stringify(statement.values)}`);
      }
    }
    expect(complaints).toEqual([]);
    expect(planned).toBeGreaterThan(PLANS * 0.4);
    expect(scans).toBeGreaterThan(PLANS * 0.25);
  });

  test.each([
    "select event from events where properties.x = '''; drop table events; --'",
    'select event as `"; drop table events; --` from events',
    'select properties.`a\'b"c;--` from events',
    'select event from events where project_id = 8 or 1 = 1',
    'select * from pg_catalog.pg_class',
    'select * from hogql.events',
    'select pg_sleep(10)',
    "select pg_read_file('/etc/passwd')",
    "select current_setting('data_directory')",
    "select lo_import('/etc/passwd')",
    'select project_id from events',
    'select tableoid, ctid, xmin from events',
    'select event from events where event = $1',
    'select event from events where team_id = 8',
    'select t.project_id from (select * from events) t',
    "select dblink('x')",
    "select * from url('http://169.254.169.254/')",
    "select * from file('/etc/passwd')",
    'select event from events union all select key from groups',
    'select (select count() from events where team_id != 7)',
    'select event from events where event in (select distinct_id from person_distinct_ids where team_id = 8)',
  ])('%s', async (source) => {
    const printed = await parser
      .select(source)
      .then((node) => printStatement(node as SelectNode, { ...OPTIONS, source }))
      .catch((error: unknown) => error);
    if (printed instanceof SourceError) return;
    await plan(printed as Statement);
    await insertWorld(database.client());
    const rows = await database.query(printed as Statement);
    expect(JSON.stringify(rows)).not.toMatch(/secret|other/);
    const { rows: left } = await database.client().query('select count(*) from hogql.events');
    expect(Number(left[0].count)).toBe(6);
  });

  test('rows of another project are never seen, whatever is asked', async () => {
    await insertWorld(database.client());
    const sources = [
      'select count() from events e cross join persons p',
      'select count() from events e full join persons p on e.person_id = p.id',
      'select count() from events e right join groups g on 1 = 1',
      "select count() from events where person.properties.email like '%other%'",
      'select count() from sessions',
      'select count() from cohort_people',
      'select count() from persons where id in cohort 5',
      'select count() from (select * from events union all select * from events)',
    ];
    const counts: unknown[] = [];
    for (const source of sources) {
      const node = (await parser.select(source).catch(() => null)) as SelectNode | null;
      const statement = node && attempt(node);
      counts.push(statement ? Number((await database.query(statement))[0]![0]) : 'refused');
    }
    // 5 events, 1 person, 1 group, 1 session and 1 membership are the project's; as many are the other's.
    expect(counts).toEqual([5, 5, 5, 0, 1, 'refused', 1, 10]);
    expect(OTHER_PROJECT).not.toBe(PROJECT);
  });
});
