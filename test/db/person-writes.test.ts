import { beforeAll, expect, test } from '@jest/globals';
import { findPersons } from '../../db/person-writes.ts';
import type { Transaction } from '../../db/pool.ts';
import { readPersons } from '../../flags/rows/subjects.ts';
import { databaseForFile } from '../support/database.ts';
import { planOf } from '../support/plans.ts';

const database = databaseForFile();

beforeAll(async () => {
  // One project has nearly everybody, and a thousand have a few.
  await database.pool.query(
    `with made as (
       select n, case when n % 10 < 8 then 1 else 2 + n / 10 % 1000 end as project_id, md5('person ' || n)::uuid as id
       from generate_series(1, 100000) n),
     stored as (
       insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
       select project_id, id, now(), true, '{}', 0, now() from made)
     insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at)
     select project_id, 'user-' || n, id, 0, now() from made`,
  );
  await database.pool.query('vacuum analyze persons');
  await database.pool.query('vacuum analyze person_distinct_ids');
});

interface Query {
  text: string;
  values: unknown[];
}

/** The query that this sends. */
async function queryOf(send: (client: Transaction) => Promise<unknown>): Promise<Query> {
  let sent: Query | undefined;
  const client = {
    query: async (query: Query) => {
      sent = query;
      return { rows: [] };
    },
  };
  await send(client as unknown as Transaction);
  return sent as Query;
}

const WANTED = Array.from({ length: 50 }, (_, n) => ({ projectId: 1, distinctId: `user-${n * 10 + 1}` }));

test.each([
  [
    'events',
    (client: Transaction) =>
      findPersons(
        client,
        WANTED.map((one) => ({ ...one, known: undefined })),
      ),
  ],
  [
    'flags',
    (client: Transaction) =>
      readPersons(
        client,
        WANTED.map((one) => ({ ...one, names: '[]' })),
      ),
  ],
])('persons of %s are found by their keys, however uneven projects are', async (_name, send) => {
  const { text, values } = await queryOf(send);
  const plan = await planOf(database.pool, text, values, { analyze: true });
  const ids = plan.filter((node) => node['Relation Name'] === 'person_distinct_ids');
  expect(ids.map((node) => [node['Index Name'], node['Actual Loops'], node['Actual Rows']])).toEqual([
    ['person_distinct_ids_pkey', WANTED.length, 1],
  ]);
});

test('Postgres expects any project to have all distinct ids', async () => {
  // A plan is chosen by chance where two cost about the same. This decides which one it is.
  const { rows } = await database.pool.query(
    `select attoptions from pg_attribute where attrelid = 'person_distinct_ids'::regclass and attname = 'project_id'`,
  );
  expect(rows).toEqual([{ attoptions: ['n_distinct=1'] }]);
});
