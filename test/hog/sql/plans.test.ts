// Printed SQL of the usual filters is planned like SQL written by hand: what Postgres expects to pay for it is
// within a tenth. (bench/hog/sql-bench.ts measures the time.)
import { afterAll, expect, test } from '@jest/globals';
import { YARDSTICKS } from '../../../bench/hog/sql-yardsticks.ts';
import { createParser } from '../../../hog/parser/index.ts';
import { createSchema, printStatement, selection } from '../../../hog/sql/index.ts';
import { PATIENCE } from '../../support/eventually.ts';
import { eventsDatabase } from './database.ts';
import { PROJECT } from './tables.ts';

const parser = createParser({ timeoutMs: PATIENCE });
afterAll(() => parser.close());
const database = eventsDatabase();

test.each(YARDSTICKS)('$name', async ({ where, hand, select = ['count()', 'count(*)'] }) => {
  await database.replaceEvents(
    Array.from({ length: 200 }, (_, i) => ({
      event: i % 2 ? '$pageview' : 'signup',
      properties: { plan: 'pro', price: i },
    })),
  );
  await database.client().query('analyze hogql.events');
  const selected = await parser.expression(`[${select[0]}]`);
  const statement = printStatement(
    selection({
      table: 'events',
      select: selected.kind === 'array' ? [...selected.exprs] : [],
      where: await parser.expression(where),
    }),
    { schema: createSchema('on event'), projectId: PROJECT, timezone: 'UTC' },
  );
  const cost = async (text: string, values: typeof statement.values) => {
    const rows = await database.query({ text: `explain (format json) ${text}`, values });
    return (rows[0]![0] as { Plan: { 'Total Cost': number } }[])[0]!.Plan['Total Cost'];
  };
  const printed = await cost(statement.text, statement.values);
  const byHand = await cost(
    `select ${select[1]} from events e where e.project_id = ${PROJECT} and ${hand}`,
    [],
  );
  expect(printed).toBeLessThanOrEqual(byHand * 1.2);
});
