import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createIngest, type Ingest } from '../../capture/ingest.ts';
import { deleteGroup } from '../../db/groups.ts';
import { closeHorizon } from '../../db/horizon.ts';
import { groupId } from '../../db/person-ids.ts';
import { createPool, type Pool, transaction } from '../../db/pool.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually, PATIENCE } from '../support/eventually.ts';
import { capturedEvent } from './support.ts';

let pool: Pool;
let ingest: Ingest;
afterAll(async () => {
  await ingest?.close();
  await pool?.end();
});
const database = databaseForFile();
beforeAll(() => {
  pool = createPool({ url: database.url, size: 2, name: 'ingest' });
  ingest = createIngest({ pool, limits: { patience: PATIENCE } });
});

/** Sets properties of groups, in one transaction. */
const identify = (projectId: number, groups: Record<string, object>) =>
  ingest.submit({
    projectId,
    events: Object.entries(groups).map(([key, set]) =>
      capturedEvent({
        event: '$groupidentify',
        properties: { $group_type: 'company', $group_key: key, $group_set: set },
      }),
    ),
  });

async function find(projectId: number, key: string) {
  const { rows } = await database.pool.query(
    `select id, version, properties, changed_at,
       (select max(inserted_at) from events where project_id = $1 and properties ->> '$group_key' = $2) as stamp
     from groups where project_id = $1 and group_key = $2`,
    [projectId, key],
  );
  return rows[0];
}

const deleted = async (projectId: number) =>
  (
    await database.pool.query(
      'select group_key as key, version from deleted_groups where project_id = $1 order by 1',
      [projectId],
    )
  ).rows;

test('a group bears the time of the transaction that changed it last; what changes nothing leaves it', async () => {
  await identify(1, { acme: { plan: 'free' }, other: {} });
  const first = await find(1, 'acme');
  expect(first).toMatchObject({ version: 0, properties: { plan: 'free' }, changed_at: first.stamp });
  await identify(1, { acme: { plan: 'paid' } });
  const second = await find(1, 'acme');
  expect(second).toMatchObject({ version: 1, changed_at: second.stamp });
  expect(second.changed_at > first.changed_at).toBe(true);
  await identify(1, { acme: { plan: 'paid' } });
  const third = await find(1, 'acme');
  expect([third.version, third.changed_at]).toEqual([1, second.changed_at]);
  expect(third.stamp > second.stamp).toBe(true);
  expect((await find(1, 'other')).version).toBe(0);
});

test('a deletion is remembered, and a group that comes again goes on from its version', async () => {
  await identify(2, { acme: { n: 1 }, other: {} });
  await identify(2, { acme: { n: 2 } });
  const { id } = await find(2, 'acme');
  expect(await transaction(database.pool, (client) => deleteGroup(client, 3, id))).toBe(false);
  expect(await transaction(database.pool, (client) => deleteGroup(client, 2, id))).toBe(true);
  expect(await transaction(database.pool, (client) => deleteGroup(client, 2, id))).toBe(false);
  expect(await find(2, 'acme')).toBeUndefined();
  expect(await deleted(2)).toEqual([{ key: 'acme', version: 2 }]);
  await identify(2, { acme: { n: 3 }, third: {} });
  expect(await find(2, 'acme')).toMatchObject({ version: 3, properties: { n: 3 } });
  expect((await find(2, 'third')).version).toBe(0);
  expect(await deleted(2)).toEqual([]);
});

test('the horizon does not pass a deletion that is not committed', async () => {
  await identify(5, { acme: {} });
  const { id } = await find(5, 'acme');
  const client = await database.pool.connect();
  try {
    await client.query('begin');
    expect(await deleteGroup(client, 5, id)).toBe(true);
    expect(await closeHorizon(database.pool, 50)).toBeUndefined();
    await client.query('commit');
  } finally {
    client.release();
  }
  const closed = await eventually(() => closeHorizon(database.pool, 1_000));
  const { rows } = await database.pool.query(
    'select changed_at <= $1 as within from deleted_groups where project_id = 5',
    [closed],
  );
  expect(rows).toEqual([{ within: true }]);
});

test('a group that comes again while its deletion is not committed yet goes on from its version too', async () => {
  await identify(4, { acme: { n: 1 } });
  const { id } = await find(4, 'acme');
  const client = await database.pool.connect();
  let again: Promise<unknown>;
  try {
    await client.query('begin');
    expect(await deleteGroup(client, 4, id)).toBe(true);
    again = identify(4, { acme: { n: 2 } });
    // It waits for the row.
    await eventually(async () => {
      const { rows } = await database.pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
           and query ilike 'insert into groups%'`,
      );
      return rows.length > 0;
    });
    await client.query('commit');
  } finally {
    client.release();
  }
  await again;
  expect(await find(4, 'acme')).toMatchObject({ version: 2, properties: { n: 2 } });
  expect(await deleted(4)).toEqual([]);
});

test('no constraint of the schema names a model', async () => {
  const { rows } = await database.pool.query(
    `select conname, pg_get_constraintdef(oid) as text from pg_constraint
     where contype = 'c' and pg_get_constraintdef(oid) ~* '\\mmodel\\M'`,
  );
  expect(rows).toEqual([]);
});

test('a group that another transaction creates at the same moment is written by the next attempt', async () => {
  const projectId = 50;
  await identify(projectId, { first: {} });
  // What Postgres says where two transactions meet: the id is taken, and the row of the key is not there.
  const other = await database.pool.connect();
  try {
    await other.query('begin');
    await other.query(
      `insert into groups (project_id, group_type_index, group_key, id, created_at, updated_at, properties, version, changed_at)
       select project_id, group_type_index, 'another', $2, now(), now(), '{}', 0, changed_at
       from groups where project_id = $1`,
      [projectId, groupId(projectId, 0, 'acme')],
    );
    const written = identify(projectId, { acme: { plan: 'paid' } });
    await eventually(async () => {
      const { rows } = await database.pool.query(
        `select from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into groups%'`,
      );
      return rows.length === 1;
    });
    await other.query('commit');
    await other.query(`delete from groups where project_id = $1 and group_key = 'another'`, [projectId]);
    await written;
  } finally {
    // Also out of the transaction, if it failed.
    other.release(true);
  }
  expect(await find(projectId, 'acme')).toMatchObject({ version: 0, properties: { plan: 'paid' } });
});
