import { beforeAll, describe, expect, test } from '@jest/globals';
import { listPersons } from '../../db/persons.ts';
import { databaseForFile } from '../support/database.ts';
import { type PlanNode, planOf } from '../support/plans.ts';
import { queriesOf } from '../support/query-log.ts';
import { insertPerson } from '../support/rows.ts';

const database = databaseForFile();
const ADA = '01890af2-aaaa-7bbb-8ccc-00000000aaaa';

beforeAll(async () => {
  const { pool } = database;
  await pool.query(
    `insert into persons select 1 + n % 2, gen_random_uuid(), now() - n * interval '1 second', n % 3 = 0,
       jsonb_build_object('email', 'user-' || n || '@example.com', 'name', 'User ' || n), 0, now() - interval '1 hour'
     from generate_series(1, 20000) n;
     insert into person_distinct_ids select project_id, 'd-' || row_number() over (), id, 0, now() from persons`,
  );
  await insertPerson(pool, 1, {
    id: ADA,
    distinct_ids: ['ada', 'anonymous'],
    properties: { email: 'ada@example.com', name: 'Ada', plan: null },
    is_identified: true,
  });
  await insertPerson(pool, 2, { id: ADA, distinct_ids: ['ada'], properties: { other: true } });
  // As maintenance reads them.
  await pool.query(
    `insert into person_words select project_id, id, word_vector(project_id, person_names(properties)) from persons;
     insert into person_words_read values (1, now()), (2, now())`,
  );
  await pool.query('vacuum analyze person_words');
  await pool.query('vacuum analyze persons; ');
  await pool.query('vacuum analyze person_distinct_ids');
});

const scansOf = (nodes: PlanNode[]) =>
  nodes
    .filter((node) => / Scan$/.test(node['Node Type']))
    .map((node) => `${node['Node Type']} ${node['Relation Name'] ?? ''}`.trim());

describe('lists of persons', () => {
  test.each([
    ['the newest', {}, 10],
    ['one by a distinct_id', { distinctId: 'ada' }, 10],
    ['one by an email', { email: 'ADA@example.com' }, 10],
    ['those that a text leads to', { search: 'ada' }, 30],
  ])('%s are read by indexes, without reading the rest', async (_name, filter, rows) => {
    const query = { projectId: 1, distinctIds: 10, limit: 5, offset: 0, ...filter };
    const { result, queries, values } = await queriesOf(() => listPersons(database.pool, query));
    expect(result.rows.length).toBeGreaterThan(0);
    const index = queries.findIndex((text) => text.includes('limit'));
    const plan = await planOf(database.pool, queries[index] as string, values[index] as unknown[], {
      analyze: true,
    });
    // The words of so few persons are small: Postgres may read all of them rather than their index.
    const small = ['person_words', 'person_carrying'];
    const nodes = plan.filter((node) => !small.includes(node['Relation Name'] as string));
    expect(scansOf(nodes).filter((type) => type.startsWith('Seq Scan'))).toEqual([]);
    const looked = nodes
      .filter((node) => node['Relation Name'])
      .reduce(
        (sum, node) =>
          sum +
          ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * (node['Actual Loops'] ?? 0),
        0,
      );
    expect(looked).toBeLessThanOrEqual(rows);
  });
});
