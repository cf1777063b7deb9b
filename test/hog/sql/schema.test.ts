// The names that HogQL knows are those of the tables that migrations make: everything can be selected from them.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createParser } from '../../../hog/parser/index.ts';
import { createSchema, type PersonMode, printStatement } from '../../../hog/sql/index.ts';
import { databaseForFile } from '../../support/database.ts';
import { PATIENCE } from '../../support/eventually.ts';
import { insertEvents, insertGroup, insertPerson } from '../../support/rows.ts';

const parser = createParser({ timeoutMs: PATIENCE });
afterAll(() => parser.close());
const database = databaseForFile();
const ADA = '01890af2-aaaa-7bbb-8ccc-00000000aaaa';
const SESSION = '019a6d2a-2800-7abc-8def-000000000001';
let projectId: number;
let otherId: number;

beforeAll(async () => {
  const { pool } = database;
  const { rows } = await pool.query(
    `with made as (insert into organizations (id, name, slug) values (gen_random_uuid(), 'a', 'a') returning id)
     insert into projects (uuid, organization_id, name, api_token)
     select gen_random_uuid(), id, name, name from made, unnest('{one,other}'::text[]) as name returning id`,
  );
  [projectId, otherId] = rows.map((row) => row.id) as [number, number];
  for (const [project, email] of [
    [projectId, 'ada@example.com'],
    [otherId, 'secret@example.com'],
  ] as const) {
    await insertPerson(pool, project, { id: ADA, distinct_ids: ['ada'], properties: { email } });
    await insertGroup(pool, project, {
      id: ADA,
      group_type_index: 0,
      group_key: 'acme',
      properties: { email },
    });
    await insertEvents(
      pool,
      [0, 5].map((seconds) => ({
        project_id: project,
        distinct_id: 'ada',
        timestamp: new Date(Date.UTC(2025, 10, 10, 9, 0, seconds)).toISOString(),
        session_id: SESSION,
        properties: { $current_url: `https://example.com/${seconds}`, utm_source: email, gclid: 'g' },
        person_id: ADA,
        person_properties: { email },
        group_0: 'acme',
      })),
    );
  }
});

async function select(source: string, mode: PersonMode = 'on event'): Promise<unknown[][]> {
  const node = await parser.select(source);
  if (node.kind !== 'selectQuery') throw new Error('a SELECT is needed');
  const { text, values } = printStatement(node, {
    schema: createSchema(mode),
    projectId,
    timezone: 'UTC',
    source,
  });
  return (await database.pool.query({ text, values, rowMode: 'array' })).rows;
}

describe.each(['on event', 'current'] as const)('every column, with persons %s', (mode) => {
  const { tables } = createSchema(mode);
  test.each(Object.keys(tables))('of %s', async (name) => {
    const columns = Object.entries(tables[name]!.fields).flatMap(([field, { kind }]) =>
      kind === 'column' ? [`\`${field}\``] : [],
    );
    const rows = await select(`select ${columns.join(', ')} from ${name}`, mode);
    expect(rows).toHaveLength(name === 'events' ? 2 : 1);
    expect(JSON.stringify(rows)).not.toContain('secret');
  });
});

test('every column of the view of sessions has a name in HogQL', async () => {
  const { rows } = await database.pool.query(
    `select attname from pg_attribute where attrelid = 'sessions'::regclass and attnum > 0`,
  );
  const known = Object.keys(createSchema('on event').tables.sessions!.fields);
  const missing = rows
    .map((row) => row.attname as string)
    .filter((name) => ![name, `$${name}`].some((one) => known.includes(one)));
  // The first two are called team_id and max_inserted_at.
  expect(missing.sort()).toEqual(['_inserted_at', 'project_id']);
});

test('an event leads to its session, person and group', async () => {
  const rows = await select(
    `select session.$entry_utm_source, session.$channel_type, session.$pageview_count, session.duration,
       person.created_at is not null, pdi.person.properties.email, group_0.properties.email
     from events order by timestamp limit 1`,
  );
  const email = 'ada@example.com';
  expect(rows).toEqual([[email, 'Paid Search', 2, 5, true, email, email]]);
  expect(await select('select count() from sessions where $is_bounce')).toEqual([[0]]);
});

test('now, an event belongs to the person that has its distinct_id, and the person of the event has another name', async () => {
  const merged = '00000000-0000-4000-8000-0000000000bb';
  const { rows: before } = await database.pool.query(
    `update person_distinct_ids set person_id = $1 where project_id = $2 returning distinct_id`,
    [merged, projectId],
  );
  expect(before.length).toBeGreaterThan(0);
  const columns = 'person_id, person.id, poe.id, pdi.person_id, person.created_at is null, uniq(person_id)';
  const source = `select ${columns} from events group by 1, 2, 3, 4, 5`;
  expect(await select(source, 'current')).toEqual([[merged, merged, ADA, merged, true, 1]]);
  expect(await select(source, 'on event')).toEqual([[ADA, ADA, ADA, merged, false, 1]]);
  expect(await select(`select count() from events e where e.person_id = '${merged}'`, 'current')).toEqual([
    [2],
  ]);
  // An event whose distinct_id belongs to nobody keeps the person that it came with.
  await database.pool.query('delete from person_distinct_ids where project_id = $1', [projectId]);
  expect(await select('select person_id, person.properties.email from events', 'current')).toEqual([
    [ADA, 'ada@example.com'],
    [ADA, 'ada@example.com'],
  ]);
});
