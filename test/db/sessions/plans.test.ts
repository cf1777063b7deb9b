import { beforeAll, describe, expect, test } from '@jest/globals';
import { databaseForFile } from '../../support/database.ts';
import { type PlanNode, planOf } from '../../support/plans.ts';
import { SESSIONS_BEGUN_SQL, SESSIONS_BY_ID_SQL, SESSIONS_CHANGED_SQL } from './readers.ts';

const database = databaseForFile();
const EVENTS = 60_000;
const START = Date.UTC(2026, 9, 5);
const minutes = (n: number) => new Date(START + n * 60_000).toISOString();
/** The id that the statement below gives to the session of the event that happened at that minute. */
const idAt = (minute: number) => {
  const hex = (START + minute * 60_000).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
};

/** Two projects, an event a minute for six weeks, in weekly partitions; stored as they happened. */
beforeAll(async () => {
  const { pool } = database;
  for (let week = 0; week < 6; week += 1) {
    const [from, to] = [minutes(week * 10_080), minutes((week + 1) * 10_080)];
    await pool.query(
      `create table events_old_${week} partition of events for values from ('${from}') to ('${to}')`,
    );
  }
  await pool.query(
    `insert into events
     select 1 + n % 2, gen_random_uuid(), t, t, t, false, '$pageview', 'user', '{"$current_url":"https://example.com/"}',
       case when n % 10 = 0 then 'other-' || n
         else left(h, 8) || '-' || right(h, 4) || '-7000-8000-000000000000' end,
       null, '', gen_random_uuid(), 'full', '{}'
     from generate_series(0, $1 - 1) n
     cross join lateral (select $2::timestamptz + n * interval '1 minute' as t) as made
     cross join lateral (select lpad(to_hex((extract(epoch from t) * 1000)::bigint), 12, '0') as h) as hex
     order by n`,
    [EVENTS, minutes(0)],
  );
  await pool.query('vacuum analyze events');
});

/** Rows of events that a node looked at, used or not. */
const lookedAt = (node: PlanNode) =>
  ((node['Actual Rows'] ?? 0) +
    (node['Rows Removed by Filter'] ?? 0) +
    (node['Rows Removed by Index Recheck'] ?? 0)) *
  (node['Actual Loops'] ?? 0);
const ofEvents = (nodes: PlanNode[]) => nodes.filter((node) => node['Relation Name']?.startsWith('events'));
const looked = (nodes: PlanNode[]) => ofEvents(nodes).reduce((sum, node) => sum + lookedAt(node), 0);
/** Partitions that are empty may well be read so. */
const sequential = (nodes: PlanNode[]) =>
  ofEvents(nodes).filter((node) => node['Node Type'] === 'Seq Scan' && lookedAt(node) > 0);

describe('reading sessions by the index', () => {
  test.each<[string, string, unknown[], number, number]>([
    ['one by its id', SESSIONS_BY_ID_SQL, [1, [idAt(30_002)], [null]], 1, 26 * 30],
    [
      'one whose id tells no time',
      SESSIONS_BY_ID_SQL,
      [1, ['other-30000'], [`{["${minutes(29_940)}","${minutes(30_060)}")}`]],
      1,
      2 * 30,
    ],
    ['those that began in an hour', SESSIONS_BEGUN_SQL, [1, minutes(30_000), minutes(30_060)], 30, 50 * 30],
    ['those of one minute', SESSIONS_BEGUN_SQL, [1, minutes(30_002), minutes(30_003)], 1, 27 * 30],
    [
      'those that changed in an hour',
      SESSIONS_CHANGED_SQL,
      [1, minutes(30_000), minutes(30_060)],
      30,
      50 * 30 + 1_500,
    ],
  ])('%s', async (_name, text, values, sessions, atMost) => {
    const { rowCount } = await database.pool.query(text, values);
    expect(rowCount).toBe(sessions);
    const nodes = await planOf(database.pool, text, values, { analyze: true });
    expect(sequential(nodes)).toEqual([]);
    // Thirty events an hour are the project's: what is looked at follows from the time, not from the table. Stretches of
    // the horizon's time are found by the block, with the other projects' events.
    expect(looked(nodes)).toBeGreaterThan(0);
    expect(looked(nodes)).toBeLessThan(atMost + 200);
  });
});
