import { beforeAll, expect, test } from '@jest/globals';
import type { Queryable } from '../../../db/pool.ts';
import { uuidv7 } from '../../../db/uuid.ts';
import { listBackfills, progressOf } from '../../../exports/rows/backfills.ts';
import { type LogQuery, listLogs } from '../../../exports/rows/logs.ts';
import { listRuns, type RunQuery } from '../../../exports/rows/run-lists.ts';
import { databaseForFile } from '../../support/database.ts';
import { type PlanNode, planOf } from '../../support/plans.ts';

const database = databaseForFile();
const key = { projectId: 1, exportId: uuidv7() };
const backfillId = uuidv7();
const RUNS = 20_000;
const minutes = (n: number) => new Date(Date.UTC(2026, 0, 1) + n * 60_000).toISOString();
const [day, end] = [minutes(5 * RUNS - 24 * 60), minutes(5 * RUNS)];

beforeAll(async () => {
  const { pool } = database;
  for (const [exportId, runs] of [
    [key.exportId, RUNS],
    [uuidv7(), RUNS / 4],
  ] as const) {
    const since = `$2::timestamptz + n * interval '5 minutes'`;
    const values = [exportId, minutes(0), runs];
    await pool.query(
      `insert into batch_export_runs (project_id, id, batch_export_id, workflow_id, workflow_run_id, status,
         data_interval_start, data_interval_end, fence, created_at)
       select 1, gen_random_uuid(), $1, 'w', gen_random_uuid(), 'Completed', ${since},
         ${since} + interval '5 minutes', n, ${since} + interval '5 minutes' from generate_series(0, $3 - 1) as n`,
      values,
    );
    await pool.query(
      `insert into batch_export_logs (project_id, batch_export_id, timestamp, level, message)
       select 1, $1, ${since}, 'INFO', 'Starting' from generate_series(0, $3 - 1) as n`,
      values,
    );
  }
  await pool.query(
    `insert into batch_export_backfills (project_id, id, batch_export_id, workflow_id, status, total_runs)
     values (1, $2, $1, 'w', 'Completed', $3), (1, gen_random_uuid(), $1, 'w', 'Cancelled', $3)`,
    [key.exportId, backfillId, RUNS],
  );
  await pool.query('update batch_export_runs set backfill_id = $2 where batch_export_id = $1', [
    key.exportId,
    backfillId,
  ]);
  await pool.query('vacuum analyze batch_export_runs, batch_export_logs, batch_export_backfills');
});

/** The plan of what a function asks, as it was executed. */
async function planned(ask: (queryable: Queryable) => Promise<unknown>): Promise<PlanNode[]> {
  let asked: [text: string, values: unknown[]] | undefined;
  const query = async (text: string, values: unknown[]) => {
    asked = [text, values];
    return database.pool.query(text, values);
  };
  await ask({ query } as Queryable);
  return planOf(database.pool, ...(asked as NonNullable<typeof asked>), { analyze: true });
}

/** Rows that were read to answer, wanted or not. */
const looked = (nodes: PlanNode[]) =>
  nodes
    .filter((node) => node['Relation Name'] !== undefined)
    .reduce((sum, node) => sum + (node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0), 0);

test.each<[string, Partial<RunQuery>, number]>([
  ['made within a day', { from: day, to: end }, 101],
  ['made within a day, oldest first', { from: day, to: end, ascending: true }, 101],
  ['whose interval lies within a day', { from: day, to: end, ordering: 'data_interval_start' }, 289],
  ['made any time', { from: minutes(0), to: end }, 101],
  [
    'made any time, from a place in the middle on',
    { from: minutes(0), to: end, position: { value: minutes(RUNS), id: uuidv7() } },
    101,
  ],
])('of 20,000 runs those %s are found by index', async (_name, query, most) => {
  const nodes = await planned((queryable) =>
    listRuns(queryable, {
      ...{ ...key, ordering: 'created_at', ascending: false, from: day, to: end, limit: 100 },
      ...query,
    }),
  );
  expect(nodes.filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([]);
  expect(looked(nodes)).toBeGreaterThan(0);
  expect(looked(nodes)).toBeLessThanOrEqual(most);
});

test.each<[string, Partial<LogQuery>, number]>([
  ['newest', {}, 50],
  ['of a day', { after: day }, 50],
  ['before a time', { before: minutes(RUNS) }, 50],
])('of 20,000 log entries the %s are found by index', async (_name, query, most) => {
  const nodes = await planned((queryable) => listLogs(queryable, { ...key, limit: 50, ...query }));
  expect(nodes.filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([]);
  expect(looked(nodes)).toBeGreaterThan(0);
  expect(looked(nodes)).toBeLessThanOrEqual(most);
});

test('of backfills that are over the runs are not counted', async () => {
  const list = (queryable: Queryable) =>
    listBackfills(queryable, { ...key, ordering: 'created_at', ascending: true, limit: 50 });
  expect((await list(database.pool)).rows.map(progressOf)).toEqual([
    { total_runs: RUNS, finished_runs: RUNS, progress: 1 },
    null,
  ]);
  expect(looked(await planned(list))).toBe(2);
});
