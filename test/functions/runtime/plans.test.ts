import { beforeAll, expect, test } from '@jest/globals';
import type { Queryable } from '../../../db/pool.ts';
import { listInvocations } from '../../../functions/rows/history.ts';
import { ensureHistoryPartitions } from '../../../functions/rows/upkeep.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile({ starts: false });
const NUMBER = 30_000;
let id: string;

beforeAll(async () => {
  const { pool } = world.api;
  id = await world.create({ ...sender(world.url()), enabled: false });
  const weeks = [0, 7, 14].map((days) => new Date(Date.now() - days * 86_400_000));
  for (const week of weeks) await ensureHistoryPartitions(pool, week, 0);
  await pool.query(
    `insert into function_invocations (project_id, id, function_id, version, status, attempts, created_at, finished_at)
     select $1, gen_random_uuid(), $2, 1, case n % 3 when 0 then 'succeeded' else 'failed' end, '[]', at, at
     from generate_series(1, ${NUMBER}) n
     cross join lateral (select clock_timestamp() - n * interval '1 minute' as at) a`,
    [world.anna.projectId, id],
  );
  await pool.query('analyze function_invocations');
});

/** Which rows each step of the plan of a list has read. */
async function stepsOf(more: object): Promise<{ node: string; rows: number }[]> {
  const steps: { node: string; rows: number }[] = [];
  const explaining = {
    async query(sql: string, values: unknown[]) {
      const { rows } = await world.api.pool.query(`explain (analyze, format json) ${sql}`, values);
      const visit = (plan: Record<string, unknown>) => {
        steps.push({ node: plan['Node Type'] as string, rows: plan['Actual Rows'] as number });
        for (const child of (plan.Plans as Record<string, unknown>[] | undefined) ?? []) visit(child);
      };
      visit(rows[0]['QUERY PLAN'][0].Plan);
      return { rows: [] };
    },
  } as unknown as Queryable;
  await listInvocations(explaining, {
    ...{ projectId: world.anna.projectId, functionId: id, waiting: false, ascending: false, limit: 100 },
    ...more,
  });
  return steps;
}

test.each([
  ['the open ones', { isOpen: true }],
  ['all', {}],
  [
    'the open ones after a place',
    {
      isOpen: true,
      position: {
        value: new Date(Date.now() - 10 * 86_400_000).toISOString(),
        id: '00000000-0000-4000-8000-000000000001',
      },
    },
  ],
])('of many dead letters a page is read, not all: %s', async (_name, more) => {
  const steps = await stepsOf(more);
  expect(steps.some(({ node }) => node.startsWith('Index'))).toBe(true);
  expect(
    steps.filter(({ node }) => node === 'Sort' || node === 'Seq Scan').filter(({ rows }) => rows > 0),
  ).toEqual([]);
  // About a page of each week.
  expect(Math.max(...steps.map(({ rows }) => rows))).toBeLessThan(1_000);
});
