// How much private memory a backend of Postgres takes to plan a statement with as many tables as one may have, where there are
// events of three years.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { SelectNode } from '../../../hog/ast/index.ts';
import { createParser } from '../../../hog/parser/index.ts';
import { createSchema, printStatement, QUERY_LIMITS } from '../../../hog/sql/index.ts';
import { databaseForFile } from '../../support/database.ts';
import { PATIENCE } from '../../support/eventually.ts';

const WEEKS = 156;
/** What docs/hogql.md says. A query may take a GiB on the machine of the API, see db/reading.ts. */
const MOST_MEBIBYTES = 700;

const database = databaseForFile();
const parser = createParser({ timeoutMs: PATIENCE });
afterAll(() => parser.close());

beforeAll(async () => {
  await database.pool.query(`do $$
    declare monday timestamptz := date_trunc('week', now() at time zone 'utc') at time zone 'utc';
    begin
      for week in 1..${WEEKS} loop
        execute format('create table if not exists %I partition of events for values from (%L) to (%L)',
          'events_' || to_char((monday - week * interval '7 days') at time zone 'utc', 'YYYYMMDD'),
          monday - week * interval '7 days', monday - (week - 1) * interval '7 days');
      end loop;
    end $$`);
});

const { maxEventReads, maxJoinedEvents, maxReads, maxJoined } = QUERY_LIMITS;
const times = (count: number, make: (index: number) => string, between: string) =>
  Array.from({ length: count }, (_, index) => make(index)).join(between);
const joined = (table: string, id: string, count: number) =>
  `select count() from ${times(count, (i) => `${table} e${i}${i === 0 ? '' : ` on e${i}.${id} = e0.${id}`}`, ' join ')}`;

const privateMebibytes = (pid: number): number =>
  Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

test.each([
  ['events', times(maxEventReads, () => 'select count() from events', ' union all ')],
  ['values', `select ${times(maxEventReads, () => "(select count() from events where event = 'a')", ', ')}`],
  ['sessions', times(maxEventReads / 4, () => 'select count() from sessions', ' union all ')],
  [
    'joins of events',
    times(maxEventReads / maxJoinedEvents, () => joined('events', 'uuid', maxJoinedEvents), ' union all '),
  ],
  ['persons', times(maxReads, () => 'select count() from persons', ' union all ')],
  ['a join of persons', joined('persons', 'id', maxJoined)],
])('planning takes a bounded amount of memory: %s', async (_what, source) => {
  const client = await database.pool.connect();
  let most = 0;
  try {
    const { rows } = await client.query('select pg_backend_pid() as pid');
    const { pid } = rows[0];
    const { text, values } = printStatement((await parser.select(source)) as SelectNode, {
      ...{ schema: createSchema('current'), projectId: 1, timezone: 'UTC', source },
    });
    const timer = setInterval(() => {
      most = Math.max(most, privateMebibytes(pid));
    }, 10);
    await client.query(`explain ${text}`, values).finally(() => clearInterval(timer));
    most = Math.max(most, privateMebibytes(pid));
  } finally {
    // A backend keeps what it has learnt about tables.
    client.release(true);
  }
  expect(most).toBeLessThan(MOST_MEBIBYTES);
});
