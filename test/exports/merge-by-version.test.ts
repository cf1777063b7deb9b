import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { deletePersons } from '../../db/person-deletions.ts';
import { transaction } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { postgresSettings } from '../support/postgres-settings.ts';
import { programsForFile } from '../support/programs.ts';
import { insertEvents, insertGroup, insertPerson } from '../support/rows.ts';
import { exportWorldForFile, FIRST, HOUR, hour } from './support.ts';
import { operatorForFile } from './whole-run.ts';

const programs = programsForFile();
const world = exportWorldForFile();
const target = databaseForFile();
const operator = operatorForFile(programs, world);
let project: number;
let table = '';
let tables = 0;
beforeAll(() => {
  project = operator.tenant.projectId;
});
beforeEach(() => {
  tables += 1;
  table = `merged_${tables}`;
});

const configOf = (more: object = {}) => ({ ...postgresSettings(target.url, table), ...more });
const rows = async (text: string) => (await target.pool.query(text)).rows;
const minute = (n: number, minutes: number) => new Date(FIRST + n * HOUR + minutes * 60_000).toISOString();

/**
 * A run of the n-th hour that has read its rows and stands still just before it merges them; meanwhile something
 * happens and the next hour is exported, and then it goes on.
 */
async function late(model: string, n: number, meanwhile: () => Promise<unknown>) {
  const gate = Promise.withResolvers<void>();
  let isHeld = false;
  const behind = Number(new URL(target.url).port);
  const proxy = await startPostgresProxy({
    behind,
    watch(piece) {
      if (!piece.includes('insert into')) return undefined;
      isHeld = true;
      return gate.promise;
    },
  });
  try {
    const path = await operator.create('Postgres', configOf({ port: proxy.port }), { model });
    const { workflow_id: id } = await operator.ask('POST', `${path}run/`, { start_at: hour(n) });
    await eventually(async () => isHeld);
    await meanwhile();
    const destination = { type: 'Postgres', config: configOf({ port: behind }) };
    await operator.ask('PATCH', path, { destination });
    expect(await operator.run(path, hour(n + 1))).toMatchObject({ status: 'Completed' });
    gate.resolve();
    const older = await operator.lastRun(path, id);
    expect(older).toMatchObject({ status: 'Completed' });
    return { path, older };
  } finally {
    gate.resolve();
    await proxy.close();
  }
}

async function person(name: string, distinctIds: string[], version: number, changed: string) {
  const id = uuidv7();
  await insertPerson(world.pool, project, { id, distinct_ids: distinctIds, properties: { name }, version });
  await changedAt(id, changed);
  return id;
}
const changedAt = (id: string, changed: string) =>
  world.pool.query('update persons set changed_at = $2 where id = $1', [id, changed]);
const known = async () =>
  (await rows(`select distinct_id, properties->>'name' as name, is_deleted from ${table} order by 1`)).map(
    (row) => [row.distinct_id, row.is_deleted ? 'deleted' : row.name],
  );

describe('persons', () => {
  test('who changed twice are as they were last, whichever run comes last', async () => {
    const id = await person('young', ['p1', 'p2'], 4, minute(0, 10));
    const { path, older } = await late('persons', 0, async () => {
      await world.pool.query(
        `update persons set properties = '{"name": "old"}', version = version + 1 where id = $1`,
        [id],
      );
      await changedAt(id, minute(1, 10));
    });
    expect(await known()).toEqual([
      ['p1', 'old'],
      ['p2', 'old'],
    ]);
    // There is nothing to tell of that hour any more.
    expect(await operator.retry(path, older)).toMatchObject({ status: 'Completed', records_completed: 0 });
    expect(await known()).toEqual([
      ['p1', 'old'],
      ['p2', 'old'],
    ]);
  });

  test('whose distinct id became somebody’s of fewer changes stay that somebody', async () => {
    await person('absorbed', ['anonymous'], 10, minute(10, 10));
    await late('persons', 10, async () => {
      const main = await person('main', ['main'], 1, minute(11, 10));
      await world.pool.query(
        `update person_distinct_ids set person_id = $2, version = version + 1 where project_id = $1 and distinct_id = 'anonymous'`,
        [project, main],
      );
      await world.pool.query(
        `delete from persons where project_id = $1 and properties->>'name' = 'absorbed'`,
        [project],
      );
    });
    expect(await known()).toEqual([
      ['anonymous', 'main'],
      ['main', 'main'],
    ]);
  });

  test('who were deleted stay so, and whoever comes with the distinct id next is told of', async () => {
    const id = await person('first', ['gone', 'again'], 10, minute(20, 10));
    const { path } = await late('persons', 20, async () => {
      await transaction(world.pool, (client) => deletePersons(client, project, { ids: [id] }));
      await world.pool.query('update deleted_distinct_ids set changed_at = $1', [minute(21, 10)]);
    });
    expect(await known()).toEqual([
      ['again', 'deleted'],
      ['gone', 'deleted'],
    ]);
    const next = await person('second', ['again'], 0, minute(22, 10));
    await world.pool.query(
      `update person_distinct_ids set version = (select version + 1 from deleted_distinct_ids where distinct_id = 'again') where person_id = $1`,
      [next],
    );
    expect(await operator.run(path, hour(22))).toMatchObject({ status: 'Completed', records_completed: 1 });
    expect(await known()).toEqual([
      ['again', 'second'],
      ['gone', 'deleted'],
    ]);
  });
});

test('groups that changed, left and came again are as they were last, whichever run comes last', async () => {
  const ids = ['changed', 'gone', 'again'].map((group_key) => ({ group_key, id: uuidv7() }));
  for (const one of ids) {
    await insertGroup(world.pool, project, { ...one, group_type_index: 0, properties: { name: 'young' } });
  }
  const stamp = (n: number, where: string) =>
    world.pool.query(`update groups set changed_at = $1 where ${where}`, [minute(n, 10)]);
  await stamp(40, 'true');
  const identify = (key: string) =>
    fetch(`${operator.api.url}/batch/`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        api_key: operator.tenant.projectToken,
        batch: [
          {
            ...{ uuid: uuidv7(), event: '$groupidentify', distinct_id: 'anybody' },
            properties: { $group_type: 'company', $group_key: key, $group_set: { name: 'old' } },
          },
        ],
      }),
    });
  const { path, older } = await late('groups', 40, async () => {
    expect((await identify('changed')).status).toBe(200);
    for (const { id } of ids.slice(1)) {
      await operator.ask('DELETE', `/api/projects/${project}/groups/${id}/`);
    }
    expect((await identify('again')).status).toBe(200);
    await stamp(41, `properties ->> 'name' = 'old'`);
    await world.pool.query('update deleted_groups set changed_at = $1', [minute(41, 20)]);
  });
  const known = () =>
    rows(
      `select group_key, group_properties ->> 'name' as name, is_deleted, version from ${table} order by 1`,
    );
  const last = [
    { group_key: 'again', name: 'old', is_deleted: false, version: 2 },
    { group_key: 'changed', name: 'old', is_deleted: false, version: 1 },
    { group_key: 'gone', name: null, is_deleted: true, version: 1 },
  ];
  const numbered = async () => (await known()).map((row) => ({ ...row, version: Number(row.version) }));
  expect(await numbered()).toEqual(last);
  // There is nothing to tell of that hour any more.
  expect(await operator.retry(path, older)).toMatchObject({ status: 'Completed', records_completed: 0 });
  expect(await numbered()).toEqual(last);
});

test('sessions that changed in their middle are as they were last, whichever run comes last', async () => {
  const began = FIRST + 30 * HOUR;
  const hex = (began + 60_000).toString(16).padStart(12, '0');
  const session_id = `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000001`;
  const view = (minutes: number, inserted_at: string) => ({
    ...{ project_id: project, session_id, inserted_at, timestamp: minute(30, minutes) },
    properties: { $current_url: `https://example.com/${minutes}` },
  });
  await insertEvents(world.pool, [view(1, minute(30, 1)), view(30, minute(30, 30))]);
  const { path, older } = await late('sessions', 30, () =>
    insertEvents(world.pool, [view(15, minute(31, 5))]),
  );
  const sessions = () => rows(`select pageview_count, cardinality(urls) as urls from ${table}`);
  expect(await sessions()).toEqual([{ pageview_count: 3, urls: 3 }]);
  expect(await operator.retry(path, older)).toMatchObject({ status: 'Completed', records_completed: 1 });
  expect(await sessions()).toEqual([{ pageview_count: 3, urls: 3 }]);
});
