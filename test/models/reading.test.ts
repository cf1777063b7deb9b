import { beforeAll, describe, expect, test } from '@jest/globals';
import { copyOut } from '../../db/copy-out.ts';
import { countRows, estimate, type ModelOptions, previewRows } from '../../models/index.ts';
import { databaseForFile } from '../support/database.ts';
import { PATIENCE } from '../support/eventually.ts';
import type { PlanNode } from '../support/plans.ts';
import { parserForFile, planOfQuery, queryOf, rowsOf } from './support.ts';

const database = databaseForFile();
const parser = parserForFile();
const FIRST = Date.UTC(2026, 8, 7);
const WEEK = 7 * 86_400_000;
const EVENTS = 60_000;
const hour = (n: number) => FIRST + n * 3_600_000;

/** Three weeks of events, one every half minute, a tenth of them of a second project; in weekly partitions. */
beforeAll(async () => {
  const { pool } = database;
  for (let week = 0; week < 3; week += 1) {
    const [from, to] = [FIRST + week * WEEK, FIRST + (week + 1) * WEEK].map((one) =>
      new Date(one).toISOString(),
    );
    await pool.query(
      `create table events_old_${week} partition of events for values from ('${from}') to ('${to}')`,
    );
  }
  await pool.query(
    `insert into events
     select case when n % 10 = 0 then 2 else 1 end, gen_random_uuid(), t - interval '400 days', t, t, false,
       'event ' || n % 7, 'user', json_build_object('n', n, 'text', repeat('x', 300)), null, null, '', gen_random_uuid(),
       'full', '{}'
     from generate_series(0, $1 - 1) n cross join lateral (select $2::timestamptz + n * interval '30 seconds' as t) as made
     order by n`,
    [EVENTS, new Date(FIRST).toISOString()],
  );
  await pool.query('vacuum analyze events');
});

const ofEvents = (nodes: PlanNode[]) => nodes.filter((node) => node['Relation Name']?.startsWith('events'));
const lookedAt = (nodes: PlanNode[]) =>
  ofEvents(nodes).reduce(
    (sum, node) =>
      sum +
      ((node['Actual Rows'] ?? 0) +
        (node['Rows Removed by Filter'] ?? 0) +
        (node['Rows Removed by Index Recheck'] ?? 0)) *
        (node['Actual Loops'] ?? 1),
    0,
  );

const query = (start: number | null, end: number, options: Partial<ModelOptions> = {}) =>
  queryOf(parser, { interval: { start, end }, ...options });

describe('the plan', () => {
  test.each<[string, number, number, Partial<ModelOptions>]>([
    ['an hour', 200, 201, {}],
    ['an hour of a small project', 200, 201, { projectId: 2 }],
    ['a day', 200, 224, {}],
    ['an hour with filters', 200, 201, { filters: [{ type: 'event', key: 'n', operator: 'gt', value: 1 }] }],
    ['an hour of selected columns', 200, 201, { hogqlQuery: 'select event, properties.n as n from events' }],
  ])('of %s reads that time only, by the index on inserted_at', async (_name, from, to, options) => {
    const nodes = await planOfQuery(database.reader, await query(hour(from), hour(to), options));
    // Nothing of other partitions, not even by an index.
    expect([...new Set(ofEvents(nodes).map((node) => node['Relation Name']))]).toEqual(['events_old_1']);
    expect(nodes.map((node) => node['Index Name'])).toContain('events_old_1_inserted_at_idx');
    expect(nodes.filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([]);
    // 120 an hour; blocks are found in groups of 32.
    expect(lookedAt(nodes)).toBeLessThan((to - from) * 120 + 1_500);
  });

  test('of a range over a week takes the partitions that it touches', async () => {
    const nodes = await planOfQuery(database.reader, await query(hour(160), hour(180)));
    const names = [...new Set(ofEvents(nodes).map((node) => node['Relation Name']))].sort();
    expect(names).toEqual(['events_old_0', 'events_old_1']);
  });

  const property = (operator: string, value: unknown) => [{ type: 'event', key: 'text', operator, value }];
  test.each<[string, Partial<ModelOptions>]>([
    ['no filter', {}],
    ['names of events', { includeEvents: ['event 1', 'event 2'] }],
    ['a value of a property', { filters: property('exact', 'x') }],
    ['a part of a property', { filters: property('icontains', 'x') }],
    ['a regular expression', { filters: property('regex', '^x+$') }],
    ['a comparison', { filters: [{ type: 'event', key: 'n', operator: 'gt', value: 1 }] }],
    ['HogQL', { filters: [{ type: 'hogql', key: "distinct_id like 'u%' and properties.n > 5" }] }],
    ['columns of HogQL', { hogqlQuery: 'select lower(event) as e, properties.n as n from events' }],
    ['members of a cohort', { filters: [{ type: 'cohort', key: 'id', operator: 'in', value: [1, '2'] }] }],
    ['persons', { model: 'persons' }],
    ['sessions', { model: 'sessions' }],
  ])('with %s is the same for the reader as for the owner of the tables', async (_name, options) => {
    const wanted = await query(hour(200), hour(201), options);
    const shape = (nodes: PlanNode[]) =>
      nodes
        // The policy is looked up once, in a plan of its own. It and its check are no scans.
        .filter((node) => node['Relation Name'] !== undefined || node['Index Name'] !== undefined)
        .map((node) => [node['Node Type'], node['Relation Name'], node['Index Name']]);
    const owner = shape(await planOfQuery(database.pool, wanted));
    expect(owner.length).toBeGreaterThan(0);
    expect(shape(await planOfQuery(database.reader, wanted))).toEqual(owner);
  });

  test('looks up the members of a large cohort in a hash table, where there are many events', async () => {
    await database.pool.query(
      'insert into cohort_people select 1, 7, gen_random_uuid() from generate_series(1, 300000)',
    );
    await database.pool.query('analyze cohort_people');
    const filters = [{ type: 'cohort', key: 'id', operator: 'not_in', value: 7 }];
    // The persons of a few events are looked up one by one.
    for (const [start, end, isHashed] of [
      [0, 504, true],
      [200, 201, false],
    ] as const) {
      const nodes = await planOfQuery(database.reader, await query(hour(start), hour(end), { filters }));
      const hashing = ofEvents(nodes).map((node) => String(node.Filter).includes('hashed SubPlan'));
      expect(new Set(hashing)).toEqual(new Set([isHashed]));
    }
  });

  test('never leaves the order of the rows to chance', async () => {
    for (const [start, end] of [
      [200, 201],
      [0, 504],
      [168, 336],
    ] as const) {
      for (const projectId of [1, 2, 3]) {
        const nodes = await planOfQuery(database.reader, await query(hour(start), hour(end), { projectId }));
        const types = ofEvents(nodes).map((node) => node['Node Type']);
        expect(types.filter((type) => type !== 'Seq Scan' && type !== 'Bitmap Heap Scan')).toEqual([]);
        expect(nodes.filter((node) => node['Node Type'].startsWith('Gather'))).toEqual([]);
      }
    }
  });
});

describe('rows', () => {
  test('come as they were stored, each time the same', async () => {
    const { pool } = database;
    for (const [start, end] of [
      [200, 210],
      [0, 504],
    ] as const) {
      const wanted = await query(hour(start), hour(end), { hogqlQuery: 'select uuid from events' });
      const read = async () => {
        const chunks: Buffer[] = [];
        for await (const chunk of copyOut(pool, wanted.text, { settings: wanted.settings }))
          chunks.push(Buffer.from(chunk));
        return Buffer.concat(chunks);
      };
      // Others that read the table at the same time might be joined by a scan, in the middle of it.
      const [first, second, third] = await Promise.all([read(), read(), read()]);
      expect(first!.equals(second!) && first!.equals(third!)).toBe(true);
      const { rows } = await pool.query(
        'select uuid from events where project_id = 1 and inserted_at >= $1 and inserted_at < $2 order by tableoid, ctid',
        [new Date(hour(start)), new Date(hour(end))],
      );
      // Signature and header, then for each row the number of columns, a length, and the uuid; then the end.
      const uuids = rows.map((_, index) =>
        first!.subarray(19 + index * 22 + 6, 19 + (index + 1) * 22).toString('hex'),
      );
      expect(uuids).toEqual(rows.map((row) => row.uuid.replaceAll('-', '')));
    }
  });
});

describe('counts, previews, estimates', () => {
  test('count the rows', async () => {
    const all = await query(hour(0), hour(504));
    expect(await countRows(database.pool, all, { timeoutMs: PATIENCE })).toBe(54_000);
    const filters = [{ type: 'hogql', key: "event = 'event 3'" }];
    const some = await query(hour(200), hour(201), { filters });
    expect(await countRows(database.pool, some, { timeoutMs: PATIENCE })).toBe(
      (await rowsOf(database.pool, some)).length,
    );
    for (const model of ['persons', 'sessions'] as const) {
      expect(
        await countRows(database.pool, await query(hour(0), hour(1), { model }), { timeoutMs: PATIENCE }),
      ).toBe(0);
    }
  });

  test('show the first rows as JSON has them', async () => {
    const hogqlQuery =
      'select event, properties, properties.n as n, [1, 2] as list, \'"5"\' as quoted, team_id from events';
    const shown = await previewRows(database.pool, await query(hour(200), hour(201), { hogqlQuery }), 3, {
      timeoutMs: PATIENCE,
    });
    expect(shown.columns).toEqual(['event', 'properties', 'n', 'list', 'quoted', 'team_id']);
    expect(shown.rows).toHaveLength(3);
    expect(shown.rows[0]).toEqual([
      'event 5',
      { n: 24_001, text: 'x'.repeat(300) },
      '24001',
      [1, 2],
      '"5"',
      1,
    ]);
  });

  test('estimate what an interval takes', async () => {
    const day = await query(hour(200), hour(224));
    const counted = await estimate(database.pool, day, { timeoutMs: PATIENCE });
    expect(counted).toMatchObject({ rows: 2_592, exact: true });
    // As the rows are in JSON lines.
    const lines = (await rowsOf(database.pool, day)).reduce(
      (sum, row) => sum + JSON.stringify(row).length + 1,
      0,
    );
    expect(counted.bytes / lines).toBeGreaterThan(0.85);
    expect(counted.bytes / lines).toBeLessThan(1.15);
    expect(await estimate(database.pool, await query(hour(900), hour(901)), { timeoutMs: PATIENCE })).toEqual(
      {
        rows: 0,
        exact: true,
        bytes: 0,
      },
    );
  });

  test('guess what takes too long to find out', async () => {
    const all = await query(hour(0), hour(504));
    // A millisecond for each row, and for an eighth of the rows.
    const slow = { ...all, select: `${all.select} where pg_sleep(0.001)::text is not null` };
    const slowish = {
      ...all,
      select: `${all.select} where x.f1::text > '2' or pg_sleep(0.001)::text is not null`,
    };
    const guessed = await estimate(database.pool, slow, { timeoutMs: 300 });
    expect(guessed.exact).toBe(false);
    expect(guessed.rows).toBeGreaterThan(1_000);
    expect(guessed.bytes).toBeGreaterThan(guessed.rows * 100);
    const measured = await estimate(database.pool, slowish, { timeoutMs: 2_000 });
    expect(measured.exact).toBe(false);
    expect(measured.rows).toBeGreaterThan(1_000);
    expect(measured.bytes / measured.rows).toBeGreaterThan(600);
  });
});
