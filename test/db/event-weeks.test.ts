import { beforeAll, describe, expect, test } from '@jest/globals';
import { dropExpiredEvents, ensureEventPartitions, partitionOf } from '../../db/event-partitions.ts';
import { readSealedWeeks, sealedWeeks, storedRanges } from '../../db/event-spans.ts';
import { sealEventWeeks, summarizeOpenWeeks } from '../../db/event-weeks.ts';
import type { Queryable } from '../../db/pool.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { insertEvents } from '../support/rows.ts';

const database = databaseForFile();
const DAY = 86_400_000;
const work = () => ({ signal: new AbortController().signal, beat: () => undefined });
const at = (text: string) => Date.parse(text);

const indexesOf = async (partition: string) => {
  const { rows } = await database.pool.query(
    `select replace(indexrelid::regclass::text, $1 || '_', '') as name, indisvalid as valid from pg_index
     where indrelid = $1::regclass and indexrelid::regclass::text ~ '_(search|event|distinct_id|person_id)$' order by 1`,
    [partition],
  );
  return rows.map(({ name, valid }) => `${name} ${valid}`);
};
/** Seals a week, once the connection that has sealed the last one is closed. */
const sealedOne = () =>
  eventually(async () => (await sealEventWeeks(database.pool, work())) === 1 || undefined);
const ALL = ['distinct_id true', 'event true', 'person_id true', 'search true'];
const insertedAt = (projectId: number, inserted_at: string, timestamp = inserted_at) =>
  insertEvents(database.pool, [{ project_id: projectId, timestamp, inserted_at }]);

beforeAll(async () => {
  await insertedAt(1, '2024-01-02T00:00:00Z');
  await insertedAt(1, '2024-01-07T23:59:59.999999Z', '2024-01-04T04:05:06.000001Z');
  await insertedAt(1, '2024-01-09T00:00:00Z', '1999-12-31T23:59:59.999999Z');
  await insertedAt(2, '2024-01-03T00:00:00Z', '9999-12-31T00:00:00Z');
  await insertedAt(1, new Date().toISOString());
  await ensureEventPartitions(database.pool, new Date(), 2);
});

describe('weeks that are over', () => {
  test('get their indexes while events come in, even those of another week that is still written', async () => {
    // An older snapshot holds the build up.
    const reader = await database.pool.connect();
    await reader.query('begin isolation level repeatable read; select 1');
    let isSealed = false;
    const sealing = sealEventWeeks(database.pool, work()).finally(() => {
      isSealed = true;
    });
    await eventually(async () => {
      const { rows } = await database.pool.query(`select phase from pg_stat_progress_create_index`);
      return rows.some(({ phase }) => phase.startsWith('waiting for old snapshots')) || undefined;
    });
    await insertedAt(3, new Date().toISOString());
    await database.pool.query("delete from events where project_id = 3 or event = 'none'");
    expect(isSealed).toBe(false);
    await reader.query('commit');
    reader.release();
    expect(await sealing).toBe(2);
    for (const week of ['events_20240101', 'events_20240108']) expect(await indexesOf(week)).toEqual(ALL);
  });

  test('are sealed once, and an open week is not', async () => {
    expect(await sealEventWeeks(database.pool, work())).toBe(0);
    expect(await indexesOf(partitionOf(new Date()).name)).toEqual(['search true']);
    const { rows } = await database.pool.query(
      'select partition from event_weeks where sealed_at is not null order by 1',
    );
    expect(rows.map(({ partition }) => partition)).toEqual(['events_20240101', 'events_20240108']);
  });

  test('tell which times the events of each project have', async () => {
    const weeks = await readSealedWeeks(database.pool, 1);
    const [first, second] = [partitionOf(new Date('2024-01-02')), partitionOf(new Date('2024-01-09'))];
    const numbers = (...texts: string[]) => texts.map((text) => Math.floor(at(text) / (7 * DAY)));
    expect(weeks).toEqual([
      {
        ...{ from: first.from.getTime(), to: first.to.getTime() },
        weeks: numbers('2024-01-02T00:00:00Z', '2024-01-04T04:05:06Z'),
      },
      { from: second.from.getTime(), to: second.to.getTime(), weeks: numbers('1999-12-31T23:59:59Z') },
    ]);
    const others = await readSealedWeeks(database.pool, 2);
    expect(others.map((one) => one.weeks)).toEqual([numbers('9999-12-31T00:00:00Z'), []]);
  });

  test('are read once for who asks often, until one more is sealed', async () => {
    let read = 0;
    const counting = {
      query: (...given: Parameters<typeof database.pool.query>) => {
        if (String(given[0]).includes('event_spans')) read += 1;
        return database.pool.query(...given);
      },
    } as Queryable;
    const weeks = await sealedWeeks(counting, 1);
    expect(weeks).toEqual(await readSealedWeeks(database.pool, 1));
    expect(await sealedWeeks(counting, 1)).toBe(weeks);
    expect(await sealedWeeks(counting, 2)).toEqual(await readSealedWeeks(database.pool, 2));
    expect(read).toBe(2);
    await insertedAt(1, '2023-10-03T00:00:00Z', '2001-01-01T00:00:00Z');
    await ensureEventPartitions(database.pool, new Date(), 2);
    await sealedOne();
    const more = await sealedWeeks(counting, 1);
    expect(more).toHaveLength(weeks.length + 1);
    expect(more).toEqual(await readSealedWeeks(database.pool, 1));
  });

  test('find the events of a person by an index, under any of the distinct ids', async () => {
    await database.pool.query(
      `insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id, properties,
         elements_chain, person_id, person_mode, person_properties)
       select 7, gen_random_uuid(), '2023-06-06', now(), '2023-06-06', false, 'e', 'd' || i, '{}', '', md5((i / 2)::text)::uuid,
         'full', '{}' from generate_series(1, 20000) as i`,
    );
    await ensureEventPartitions(database.pool, new Date(), 2);
    await sealedOne();
    const { rows } = await database.pool.query(
      `explain (analyze, costs off, timing off, summary off) select uuid from events where project_id = 7
         and inserted_at < '2023-06-12' and inserted_at >= '2023-06-05'
         and (person_id = md5('8')::uuid or distinct_id = any(array['d7', 'd20']))`,
    );
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).toMatch(/BitmapOr.*events_20230605_person_id.*events_20230605_distinct_id/s);
    expect(plan).toMatch(/Bitmap Heap Scan on events_20230605 events \(actual rows=4\.00/);
  });

  test('do not tell the times where these are all kinds', async () => {
    await database.pool.query(
      `insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id, properties,
         elements_chain, person_id, person_mode, person_properties)
       select 6, gen_random_uuid(), now() - i * interval '1 week', now(), '2023-08-02', false, 'e', 'd', '{}', '',
         gen_random_uuid(), 'full', '{}' from generate_series(1, 300) as i`,
    );
    await ensureEventPartitions(database.pool, new Date(), 2);
    await sealedOne();
    const from = partitionOf(new Date('2023-08-02')).from.getTime();
    const weeks = await readSealedWeeks(database.pool, 6);
    expect(weeks.find((week) => week.from === from)?.weeks).toBeNull();
  });

  test('begin again where a build was ended in the middle', async () => {
    await insertedAt(1, '2023-05-02T00:00:00Z');
    await ensureEventPartitions(database.pool, new Date(), 2);
    const reader = await database.pool.connect();
    await reader.query('begin isolation level repeatable read; select 1');
    const stop = new AbortController();
    const sealing = sealEventWeeks(database.pool, { signal: stop.signal, beat: () => undefined });
    await eventually(async () => {
      const { rows } = await database.pool.query(`select phase from pg_stat_progress_create_index`);
      return rows.some(({ phase }) => phase.startsWith('waiting for old snapshots')) || undefined;
    });
    stop.abort(new Error('no more time'));
    await expect(sealing).rejects.toThrow('no more time');
    expect(await indexesOf('events_20230501')).toEqual(['event false', 'search true']);
    await reader.query('commit');
    reader.release();
    await sealedOne();
    expect(await indexesOf('events_20230501')).toEqual(ALL);
  });

  test('get their indexes again if they have lost them', async () => {
    await database.pool.query('drop index events_20230501_event');
    await sealedOne();
    expect(await indexesOf('events_20230501')).toEqual(ALL);
  });

  test('are sealed by one process at a time', async () => {
    for (const week of ['2022-05-02', '2022-05-09', '2022-05-16']) await insertedAt(1, `${week}T00:00:00Z`);
    await ensureEventPartitions(database.pool, new Date(), 2);
    const counts = await Promise.all([1, 2, 3].map(() => sealEventWeeks(database.pool, work())));
    counts.push(await sealEventWeeks(database.pool, work()));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(3);
    for (const week of ['events_20220502', 'events_20220509', 'events_20220516'])
      expect(await indexesOf(week)).toEqual(ALL);
  });

  test('are forgotten with their events', async () => {
    expect(await dropExpiredEvents(database.pool, new Date('2022-05-20T00:00:00Z'), 10)).toBe(1);
    const { rows } = await database.pool.query(
      `select (select count(*)::int from event_weeks where partition = 'events_20220502') as weeks,
         (select count(*)::int from event_spans where partition = 'events_20220502') as spans`,
    );
    expect(rows).toEqual([{ weeks: 0, spans: 0 }]);
  });
});

test('the index of an open week knows what was stored up to the last range', async () => {
  const { name } = partitionOf(new Date());
  await database.pool.query(
    `insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id, properties,
       elements_chain, person_id, person_mode, person_properties)
     select 5, gen_random_uuid(), now(), now(), now(), false, 'event ' || i % 40, 'user ' || i, json_build_object('filler', repeat('x', 700)),
       '', gen_random_uuid(), 'full', '{}' from generate_series(1, 8000) as i`,
  );
  const ranges = await summarizeOpenWeeks(database.pool, work());
  expect(ranges).toBeGreaterThan(5);
  expect(await summarizeOpenWeeks(database.pool, work())).toBe(0);
  const client = await database.pool.connect();
  await client.query('begin; set local enable_seqscan = off; set local enable_indexscan = off');
  const { rows } = await client.query(
    `explain (analyze, costs off, timing off, summary off) select uuid from ${name} where event = 'event 7' and distinct_id = 'user 47'`,
  );
  await client.query('rollback');
  client.release();
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toContain(`${name}_search`);
  expect(plan).toMatch(/rows=1\b/);
  // One range and the ones at the end, which are not known yet.
  expect(Number(/lossy=(\d+)/.exec(plan)?.[1])).toBeLessThan(64 * 4);
});

describe('ranges of storage', () => {
  const numbered = (text: string) => Math.floor(at(text) / (7 * DAY));
  const week = (number: number, ...texts: string[]) => ({
    ...{ from: number * 7 * DAY, to: (number + 1) * 7 * DAY },
    weeks: texts.map(numbered),
  });

  test('leave out weeks whose events have other times, and those without events', () => {
    const weeks = [
      week(10, '2024-01-01'),
      week(11),
      week(12, '2024-01-01', '2024-01-12', '2024-03-01'),
      week(13, '2024-03-01'),
    ];
    const [from, to] = [at('2024-01-10'), at('2024-01-20')];
    expect(storedRanges(weeks, { from, to })).toEqual([
      { from: null, to: 70 * DAY },
      { from: 84 * DAY, to: 91 * DAY },
      { from: 98 * DAY, to: null },
    ]);
    expect(storedRanges(weeks, { from: null, to: null })).toEqual([
      { from: null, to: 77 * DAY },
      { from: 84 * DAY, to: null },
    ]);
    expect(storedRanges([week(1, '2024-01-01')], { from: null, to: null })).toBeUndefined();
    expect(storedRanges([], { from, to })).toBeUndefined();
    const one = at('2024-01-12');
    expect(storedRanges([week(1, '2024-01-12'), week(2)], { from: one, to: one })).toEqual([
      { from: null, to: 14 * DAY },
      { from: 21 * DAY, to: null },
    ]);
    expect(storedRanges([{ ...week(1), weeks: null }], { from, to })).toBeUndefined();
  });

  test('are not many, and leave out the longest', () => {
    const weeks = Array.from({ length: 40 }, (_, n) => (n % 2 || n > 30 ? week(n) : week(n, '2024-01-01')));
    const ranges = storedRanges(weeks, { from: null, to: null }) ?? [];
    expect(ranges).toHaveLength(8);
    expect(ranges.at(-1)).toEqual({ from: 280 * DAY, to: null });
    for (const { from } of weeks.filter((one) => one.weeks.length > 0)) {
      const isIn = ranges.some((one) => (one.from ?? 0) <= from && from < (one.to ?? Infinity));
      expect({ from, isIn }).toEqual({ from, isIn: true });
    }
  });
});
