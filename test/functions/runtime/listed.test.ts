import { expect, test } from '@jest/globals';
import { listInvocations } from '../../../functions/rows/history.ts';
import type { ReplayRow } from '../../../functions/rows/replays.ts';
import { nextEnded } from '../../../functions/rows/reruns.ts';
import { planOf } from '../../support/plans.ts';
import { rounds } from '../../support/rounds.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile({ starts: false });
const MANY = rounds(60_000, 1_000_000);

/** The rows that a statement reads from tables, whatever becomes of them. */
async function rowsRead(ask: (queryable: never) => Promise<unknown>): Promise<number> {
  let text = '';
  let values: unknown[] = [];
  const recorder = {
    query: async (statement: string, given: unknown[]) => {
      [text, values] = [statement, given];
      return { rows: [], rowCount: 0 };
    },
  };
  await ask(recorder as never);
  const plan = await planOf(world.api.pool, text, values, { analyze: true });
  return plan
    .filter((node) => node['Relation Name']?.startsWith('function_'))
    .reduce(
      (sum, node) =>
        sum +
        ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * (node['Actual Loops'] ?? 1),
      0,
    );
}

test(`of ${MANY} dead letters, a page is found without reading the others`, async () => {
  const { pool } = world.api;
  const { projectId } = world.anna;
  const functionId = await world.create(sender(world.url()));
  await pool.query(
    `insert into function_invocations (project_id, id, function_id, version, status, error, attempts, created_at, finished_at, dismissed_at)
     select $1, gen_random_uuid(), $2, 1, case when n % 10 = 0 then 'succeeded' else 'failed' end, 'It said 500', '[]', at, at,
       case when n % 3 = 0 then at end
     from (select n, now() - n * interval '1 millisecond' as at from generate_series(1, $3) n) one`,
    [projectId, functionId, MANY],
  );
  await pool.query('analyze function_invocations');
  const key = { projectId, functionId, waiting: false, ascending: false, limit: 50 };
  const page = { value: new Date(Date.now() - MANY / 2).toISOString(), id: functionId };
  for (const query of [{ isOpen: true }, { isOpen: true, position: page }, { statuses: ['failed'] }, {}]) {
    expect(await rowsRead((queryable) => listInvocations(queryable, { ...key, ...query }))).toBeLessThan(
      1_000,
    );
  }
  const rerun = {
    ...{ project_id: projectId, function_id: functionId, selection: { status: 'failed', search: null } },
    ...{ after: null, before: null, horizon: new Date().toISOString() },
    ...{ last_timestamp: page.value, last_id: page.id },
  } as ReplayRow;
  expect(await rowsRead((queryable) => nextEnded(queryable, rerun, 1_000))).toBeLessThan(2_500);
});
