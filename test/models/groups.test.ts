import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createIngest, type Ingest } from '../../capture/ingest.ts';
import { deleteGroup } from '../../db/groups.ts';
import { closeHorizon } from '../../db/horizon.ts';
import { createPool, type Pool, transaction } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import type { ModelOptions } from '../../models/index.ts';
import { capturedEvent } from '../capture/support.ts';
import { databaseForFile } from '../support/database.ts';
import { PATIENCE } from '../support/eventually.ts';
import { insertGroup } from '../support/rows.ts';
import { END, parserForFile, planOfQuery, queryOf, rowsOf, rowsOfReader, START } from './support.ts';

let pool: Pool;
const ingests: Ingest[] = [];
afterAll(async () => {
  for (const ingest of ingests) await ingest.close();
  await pool?.end();
});
const database = databaseForFile();
const parser = parserForFile();
beforeAll(() => {
  pool = createPool({ url: database.url, size: 6, name: 'ingest' });
  for (let n = 0; n < 2; n++) ingests.push(createIngest({ pool, limits: { patience: PATIENCE } }));
});

const at = (minutes: number) => new Date(START + minutes * 60_000).toISOString();

async function group(key: string, changed: string, { project = 1, index = 0, version = 3 } = {}) {
  const id = uuidv7();
  await insertGroup(database.pool, project, {
    ...{ id, group_type_index: index, group_key: key },
    properties: { name: key },
  });
  await database.pool.query('update groups set changed_at = $2, version = $3 where id = $1', [
    ...[id, changed, version],
  ]);
  return id;
}

/** Deletes a group, as if it had been done at that time. */
async function remove(id: string, changed: string, project = 1) {
  const key = (await database.pool.query('select group_key from groups where id = $1', [id])).rows[0];
  expect(await transaction(database.pool, (client) => deleteGroup(client, project, id))).toBe(true);
  await database.pool.query('update deleted_groups set changed_at = $1 where group_key = $2', [
    changed,
    key.group_key,
  ]);
}

const groups = async (options: Partial<ModelOptions> = {}) =>
  (await rowsOf(database.pool, await queryOf(parser, { model: 'groups', ...options }))).toSorted((a, b) =>
    String(a.group_key) < String(b.group_key) ? -1 : 1,
  );

test('groups that changed in the interval, as they are now', async () => {
  await group('acme', at(0));
  await group('blue', at(59), { index: 1, version: 0 });
  await group('early', '2026-03-02T09:59:59.999999Z');
  await group('late', new Date(END).toISOString());
  await group('elsewhere', at(1), { project: 2 });
  const row = (group_key: string, group_type: string, group_type_index: number) => ({
    ...{ team_id: 1, group_type_index, group_type, group_key },
    group_properties: JSON.stringify({ name: group_key }).replace(':', ': '),
    ...{ created_at: '2026-01-02T03:04:05Z', updated_at: '2026-02-03T04:05:06Z', is_deleted: false },
  });
  expect(await groups()).toEqual([
    { ...row('acme', 'company', 0), version: 3, _inserted_at: '2026-03-02T10:00:00Z' },
    { ...row('blue', 'team', 1), version: 0, _inserted_at: '2026-03-02T10:59:00Z' },
  ]);
  const before = await groups({ interval: { start: null, end: START } });
  expect(before.map((one) => one.group_key)).toEqual(['early']);
  const tables = await groups({ columnSet: 'tables' });
  expect(tables).toEqual([
    { ...row('acme', 'company', 0), version: 3 },
    { ...row('blue', 'team', 1), version: 0 },
  ]);
});

test('groups that were deleted are told of, unless they have come again', async () => {
  const gone = await group('gone', at(2), { version: 9 });
  await remove(gone, at(3));
  const told = async () => (await groups()).filter((row) => row.group_key === 'gone');
  expect(await told()).toEqual([
    {
      ...{ team_id: 1, group_type_index: 0, group_type: 'company', group_key: 'gone' },
      ...{ group_properties: '{}', created_at: '2026-01-02T03:04:05Z', version: 10, is_deleted: true },
      ...{ updated_at: '2026-03-02T10:03:00Z', _inserted_at: '2026-03-02T10:03:00Z' },
    },
  ]);
  await ingests[0]?.submit({ projectId: 1, events: [identify('gone', 1)] });
  expect(await told()).toEqual([]);
  const now = await groups({ interval: { start: START, end: Date.now() + 60_000 } });
  expect(now.filter((row) => row.group_key === 'gone')).toMatchObject([
    { version: 11, is_deleted: false, group_properties: '{"n": 1}' },
  ]);
  // A process of an older version does not take the deletion away.
  await database.pool.query(
    `insert into deleted_groups values (1, 0, 'gone', 10, now(), $1) on conflict do nothing`,
    [at(3)],
  );
  expect(await told()).toEqual([]);
});

test('of a query: its columns, and those that pass its condition; by the names of HogQL too', async () => {
  await group('paid', at(7));
  await group('paid', at(7), { project: 2 });
  await group('paid-2', at(8));
  const hogqlQuery = `select key, index, group_type as type, upper(properties.name) as name, version + 1 as next,
    group_properties.name = properties.name as same, not is_deleted as there from groups where group_key = 'paid'`;
  const query = await queryOf(parser, { model: null, hogqlQuery });
  expect(query.model).toBe('groups');
  expect(query.columns.map(({ name, type }) => `${name}:${type}`)).toEqual([
    ...['key:string', 'index:int64', 'type:string', 'name:string', 'next:int64', 'same:bool', 'there:bool'],
  ]);
  expect(await rowsOf(database.pool, query)).toEqual([
    { key: 'paid', index: 0, type: 'company', name: 'PAID', next: 4, same: true, there: true },
  ]);
});

test('the reader sees the groups, deletions and types of its project only', async () => {
  const theirs = await group('theirs', at(10), { project: 3 });
  await group('theirs too', at(10), { project: 3 });
  await remove(theirs, at(11), 3);
  const seen = async (projectId: number) =>
    (await rowsOfReader(database.reader, await queryOf(parser, { model: 'groups', projectId }))).map((row) =>
      [row.group_type, row.group_key, row.is_deleted].join(),
    );
  expect((await seen(3)).sort()).toEqual(['company,theirs too,false', 'company,theirs,true']);
  const mine = await seen(1);
  expect(mine).toContain('company,acme,false');
  expect(mine.join()).not.toContain('theirs');
  const [query, other] = await Promise.all(
    [1, 3].map((projectId) => queryOf(parser, { model: 'groups', projectId })),
  );
  // The text of one project in a transaction of another: the second wall alone.
  const leaked = await rowsOfReader(database.reader, { ...query!, select: other!.select });
  expect(leaked).toEqual([]);
});

test('they are found by the index on their changes', async () => {
  await database.pool.query(
    `insert into groups (project_id, group_type_index, group_key, id, created_at, updated_at, properties, version, changed_at)
     select 9, 0, 'g' || n, gen_random_uuid(), now(), now(), '{}', 0, $1::timestamptz - n * interval '1 minute'
     from generate_series(1, 20000) n`,
    [at(0)],
  );
  await database.pool.query('vacuum analyze groups, deleted_groups');
  const query = await queryOf(parser, {
    ...{ model: 'groups', projectId: 9 },
    interval: { start: START - 3_600_000, end: START },
  });
  const nodes = await planOfQuery(database.pool, query);
  expect(nodes.map((node) => node['Index Name'])).toContain('groups_changed_at');
});

const identify = (key: string, n: number) =>
  capturedEvent({
    event: '$groupidentify',
    properties: { $group_type: 'company', $group_key: key, $group_set: { n } },
  });

const KEYS = ['a', 'b', 'c', 'd'];

test('of intervals that are read while groups change, come and go, no change is missing', async () => {
  const project = 77;
  let isOver = false;
  const write = async (ingest: Ingest, salt: number) => {
    for (let n = 0; n < 60; n++) {
      const keys = KEYS.filter((_, index) => (n + index + salt) % 3 > 0);
      await ingest.submit({ projectId: project, events: keys.map((key) => identify(key, n * 2 + salt)) });
    }
  };
  const erase = async () => {
    let deleted = 0;
    while (!isOver || deleted === 0) {
      const { rows } = await pool.query(
        'select id from groups where project_id = $1 order by random() limit 1',
        [project],
      );
      if (!rows[0]) await new Promise(setImmediate);
      else if (await transaction(pool, (client) => deleteGroup(client, project, rows[0].id))) deleted++;
    }
  };
  /** The rows of each interval, read as soon as the horizon has passed it, while writers go on. */
  const read: Record<string, unknown>[][] = [];
  let start = Date.parse('2026-01-01T00:00:00Z');
  const next = async () => {
    const closed = await closeHorizon(pool, 2_000);
    if (closed === undefined) return;
    const end = Math.floor(Date.parse(closed));
    if (end <= start) return;
    read.push(await groups({ projectId: project, interval: { start, end } }));
    start = end;
  };
  const eraser = erase();
  const reader = (async () => {
    while (!isOver) await next();
  })();
  await Promise.all(ingests.map(write));
  isOver = true;
  await Promise.all([eraser, reader]);
  // The last interval ends after the last change, even if the clock was set back meanwhile.
  const { rows: last } = await database.pool.query(
    `select max(changed_at) as change from (
       select changed_at from groups where project_id = $1
       union all select changed_at from deleted_groups where project_id = $1) as changes`,
    [project],
  );
  while (start <= Math.floor(Date.parse(last[0].change))) await next();

  // What a table has that merges the rows by their versions, in any order.
  const merged = new Map<string, Record<string, unknown>>();
  for (const row of read.flat().toReversed()) {
    const known = merged.get(row.group_key as string);
    if (!known || Number(row.version) > Number(known.version)) merged.set(row.group_key as string, row);
  }
  const { rows: stored } = await database.pool.query(
    `select group_key, version, properties::text as group_properties, false as is_deleted from groups where project_id = $1
     union all select group_key, version, '{}', true from deleted_groups where project_id = $1 order by 1`,
    [project],
  );
  expect(stored.map((row) => row.group_key)).toEqual(KEYS);
  expect(KEYS.map((key) => merged.get(key))).toMatchObject(stored);
  expect(read.length).toBeGreaterThan(1);
});
