import { afterAll, describe, expect, test } from '@jest/globals';
import { createIngest } from '../../capture/ingest.ts';
import {
  dropExpiredEvents,
  ensureEventPartitions,
  listEventPartitions,
  partitionOf,
  summarizeNewest,
} from '../../db/event-partitions.ts';
import { createPool, type Pool } from '../../db/pool.ts';
import { deleteProjectRows } from '../../db/project-data.ts';
import { CORE_TABLES } from '../../db/project-tables.ts';
import { capturedEvent } from '../capture/support.ts';
import { databaseForFile } from '../support/database.ts';

let pool: Pool | undefined;
afterAll(async () => {
  await pool?.end();
});
const database = databaseForFile();
const DAY = 86_400_000;

const names = async () => (await listEventPartitions(database.pool)).map((one) => one.name);
const placeOf = async (projectId: number) => {
  const { rows } = await database.pool.query(
    'select tableoid::regclass::text as place, count(*)::int as events from events where project_id = $1 group by 1 order by 1',
    [projectId],
  );
  return rows;
};
/** As if it had been stored then. */
const insertedAt = (projectId: number, at: Date, count = 1) =>
  database.pool.query(
    `insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id,
       properties, elements_chain, person_id, person_mode, person_properties)
     select $1, gen_random_uuid(), $2, $2, $2, false, 'e', 'd', '{}', '', gen_random_uuid(), 'full', '{}'
     from generate_series(1, $3)`,
    [projectId, at, count],
  );

describe('partitions of events', () => {
  test('are weeks from Monday to Monday in UTC', () => {
    const week = { name: 'events_20261228', from: new Date('2026-12-28'), to: new Date('2027-01-04') };
    expect(partitionOf(new Date('2026-12-28T00:00:00Z'))).toEqual(week);
    expect(partitionOf(new Date('2027-01-03T23:59:59.999Z'))).toEqual(week);
    expect(partitionOf(new Date('2027-01-04T00:00:00Z')).name).toBe('events_20270104');
  });

  test('are there for this week and the next ones from the first start, and made ahead later', async () => {
    const now = new Date();
    const weeks = [0, 1, 2, 3, 4].map((week) => partitionOf(new Date(now.getTime() + week * 7 * DAY)).name);
    expect(await names()).toEqual(weeks.slice(0, 3));
    expect(await ensureEventPartitions(database.pool, now, 4)).toBe(2);
    expect(await names()).toEqual(weeks);
    expect(await ensureEventPartitions(database.pool, now, 4)).toBe(0);
  });

  test('an event of any timestamp goes to the week in which it came in', async () => {
    pool = createPool({ url: database.url, size: 2, name: 'ingest' });
    const ingest = createIngest({ pool });
    const timestamps = [0, Date.UTC(1999, 0), Date.UTC(2100, 0), Date.UTC(9999, 0)];
    await ingest.submit({
      projectId: 1,
      events: timestamps.map((timestamp) => capturedEvent({ timestamp })),
    });
    await ingest.close();
    expect(await placeOf(1)).toEqual([{ place: partitionOf(new Date()).name, events: 4 }]);
  });

  test('a week that nobody made in time is made later, and its events move there from the default', async () => {
    const late = new Date('2031-05-07T12:00:00Z');
    await insertedAt(2, late, 7);
    await insertedAt(3, new Date('2031-05-12T00:00:00Z'), 5);
    expect(await placeOf(2)).toEqual([{ place: 'events_default', events: 7 }]);
    expect(await ensureEventPartitions(database.pool, new Date(), 4)).toBe(2);
    expect(await placeOf(2)).toEqual([{ place: 'events_20310505', events: 7 }]);
    expect(await placeOf(3)).toEqual([{ place: 'events_20310512', events: 5 }]);
    // The new partition takes rows and has its indexes.
    await insertedAt(2, late);
    expect(await placeOf(2)).toEqual([{ place: 'events_20310505', events: 8 }]);
    const { rows } = await database.pool.query(
      `select count(*)::int as indexes from pg_inherits where inhrelid in
         (select indexrelid from pg_index where indrelid = 'events_20310505'::regclass)`,
    );
    expect(rows).toEqual([{ indexes: 2 }]);
    const { rows: own } = await database.pool.query(
      `select to_regclass('events_20310505_search') is not null as exists`,
    );
    expect(own).toEqual([{ exists: true }]);
  });

  test('two processes that make the same weeks at once make each once', async () => {
    const now = new Date('2040-01-04T00:00:00Z');
    const made = await Promise.all([1, 2, 3].map(() => ensureEventPartitions(database.pool, now, 3)));
    expect(made.reduce((sum, count) => sum + count, 0)).toBe(4);
  });

  test("a deleted project's events and ids are deleted in every partition, and nobody else's", async () => {
    const [doomed, other] = [41, 42];
    for (const projectId of [doomed, other]) {
      for (const week of ['2031-05-07', '2035-01-01', new Date().toISOString()]) {
        await insertedAt(projectId, new Date(week), 4);
      }
      await database.pool.query(
        'insert into event_ids (project_id, uuid, timestamp) select project_id, uuid, timestamp from events where project_id = $1',
        [projectId],
      );
    }
    const counts: number[] = [];
    for await (const rows of deleteProjectRows(database.pool, doomed, 3, CORE_TABLES)) counts.push(rows);
    // Rows of different weeks lie at the same places.
    expect(counts.slice(0, 6)).toEqual([3, 1, 3, 1, 3, 1]);
    expect(Math.max(...counts)).toBe(3);
    const { rows } = await database.pool.query(
      `select project_id, count(*)::int as events, (select count(*)::int from event_ids i where i.project_id = e.project_id) as ids
       from events e where project_id in ($1, $2) group by 1`,
      [doomed, other],
    );
    expect(rows).toEqual([{ project_id: other, events: 12, ids: 12 }]);
    const { rows: ids } = await database.pool.query('select 1 from event_ids where project_id = $1', [
      doomed,
    ]);
    expect(ids).toEqual([]);
  });

  test('retention drops whole weeks that are over for so long, keeps the ids, and no other week', async () => {
    const old = new Date('2020-03-04T00:00:00Z');
    await insertedAt(4, old, 3);
    await insertedAt(5, new Date('2020-03-10T00:00:00Z'), 2);
    await ensureEventPartitions(database.pool, new Date(), 2);
    const before = await names();
    // The week of March 2 ended on March 9: on April 8, that is 30 days ago.
    expect(await dropExpiredEvents(database.pool, new Date('2020-04-07T23:59:59Z'), 30)).toBe(0);
    expect(await dropExpiredEvents(database.pool, new Date('2020-04-08T00:00:00Z'), 30)).toBe(1);
    expect(await placeOf(4)).toEqual([]);
    expect(await placeOf(5)).toEqual([{ place: 'events_20200309', events: 2 }]);
    expect(await names()).toEqual(before.filter((name) => name !== 'events_20200302'));
  });
});

test('what was stored lately is found by the time of storing, without upkeep by Postgres', async () => {
  const now = new Date();
  const { name } = partitionOf(now);
  await insertedAt(77, new Date(now.getTime() - 60_000), 20_000);
  await insertedAt(77, now, 10);
  const read = async () => {
    const { rows } = await database.pool.query(
      `explain (analyze, costs off, timing off, summary off)
       select uuid from events where project_id = 77 and inserted_at >= $1::timestamptz and inserted_at <= $2::timestamptz
       order by inserted_at, uuid limit 100`,
      [new Date(now.getTime() - 1_000).toISOString(), now.toISOString()],
    );
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  };
  // Other upkeep goes first.
  const other = await database.pool.connect();
  await other.query(`begin; lock table ${name} in share update exclusive mode`);
  expect(await summarizeNewest(database.pool, now)).toBe(false);
  await other.query('rollback');
  other.release();
  expect(await summarizeNewest(database.pool, now)).toBe(true);
  const plan = await read();
  expect(plan).toContain(`Bitmap Index Scan on ${name}_inserted_at_idx`);
  const { rows } = await database.pool.query('select brin_summarize_new_values($1) as left', [
    `${name}_inserted_at_idx`,
  ]);
  expect(rows[0].left).toBe(0);
  expect(await summarizeNewest(database.pool, new Date('2001-01-01T00:00:00Z'))).toBe(true);
});
