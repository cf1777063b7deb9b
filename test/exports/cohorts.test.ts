// Exports with cohorts in their filters and columns: who is in them, and what becomes of it when members change.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { countCohorts } from '../../cohorts/runs/count-members.ts';
import { transaction } from '../../db/pool.ts';
import { listChecks } from '../../exports/rows/checks.ts';
import { RECONCILE_EXPORTS } from '../../workflows/names.ts';
import type { ReconcileReport } from '../../workflows/reconcile-exports.ts';
import { storeCohort } from '../flags/support.ts';
import { createTenant, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { insertEvents, insertPerson } from '../support/rows.ts';
import { exportedUuids, exportWorldForFile, filesIn, HOUR, hour, hourly } from './support.ts';

const world = exportWorldForFile();
const PATIENCE = { waitMilliseconds: 120_000 };
const personOf = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;
const eventOf = (n: number) => `00000000-0000-4000-9000-00000000000${n}`;
const work = { signal: new AbortController().signal, beat: () => {} };
let tenant: Tenant;
let listed: number;

const inCohort = (...value: unknown[]) => [
  { type: 'cohort', key: 'id', operator: 'in', value: value.length > 1 ? value : value[0] },
];
const into = (directory: string) => ({ directory, file_format: 'JSONLines' });
const join = (cohort: number, person: number) =>
  world.pool.query('insert into cohort_people (project_id, cohort_id, person_id) values ($1, $2, $3)', [
    ...[tenant.projectId, cohort, personOf(person)],
  ]);

beforeAll(async () => {
  tenant = await createTenant(world.pool, 'Cohorts');
  for (const n of [1, 2, 3]) {
    await insertPerson(world.pool, tenant.projectId, {
      ...{ id: personOf(n), distinct_ids: [`user-${n}`], properties: { plan: n === 3 ? 'free' : 'paid' } },
    });
  }
  await insertEvents(
    world.pool,
    [1, 2, 3].map((n) => ({
      ...{ project_id: tenant.projectId, uuid: eventOf(n), timestamp: hour(0), person_id: personOf(n) },
      distinct_id: `user-${n}`,
    })),
  );
  listed = await storeCohort(world.pool, tenant.projectId, { name: 'listed', isStatic: true });
  await join(listed, 1);
});

test('a run takes the members of its time, and verify says that they may have changed', async () => {
  const given = { project_id: tenant.projectId, filters: inCohort(String(listed)) };
  const row = await world.create('File', into('members'), given);
  const folder = path.join(world.root, 'members');
  await world.run(row, hourly(0));
  expect(exportedUuids(folder)).toEqual([eventOf(1)]);
  await join(listed, 2);
  expect(await world.schedules.exports.verify(row, hourly(0), PATIENCE)).toMatchObject({
    ...{ verdict: 'same', problems: [], destination: { rows: 1 }, source: { state: 'members', rows: 2 } },
  });
  await world.run(row, hourly(0));
  expect(exportedUuids(folder)).toEqual([eventOf(1), eventOf(2)]);
});

test('maintenance does not take new members for damage', async () => {
  const end = Math.floor(Date.now() / HOUR) * HOUR;
  const interval = { start: new Date(end - HOUR).toISOString(), end: new Date(end).toISOString() };
  await insertEvents(
    world.pool,
    [1, 3].map((n) => ({
      ...{ project_id: tenant.projectId, timestamp: interval.start, person_id: personOf(n) },
    })),
  );
  const given = { project_id: tenant.projectId, filters: inCohort(listed) };
  const row = await world.create('File', into('compared'), given);
  await world.run(row, interval);
  await join(listed, 3);
  const report: ReconcileReport = await world.client.workflow.execute(RECONCILE_EXPORTS, {
    ...{ taskQueue: world.config.SLUICE_TASK_QUEUE, workflowId: 'reconcile-cohorts' },
  });
  expect(report.differ).toBe(0);
  const key = { projectId: tenant.projectId, exportId: row.id };
  expect(await listChecks(world.pool, key, { after: interval.start, until: interval.end })).toMatchObject([
    { state: 'same', problem: 'Not compared: members of cohorts may have changed since the run' },
  ]);
  await world.pool.query('delete from cohort_people where cohort_id = $1 and person_id = $2', [
    ...[listed, personOf(3)],
  ]);
});

test('columns may ask about cohorts', async () => {
  const hogql_query = `select uuid, person_id in cohort ${listed} as listed from events`;
  const given = { project_id: tenant.projectId, hogql_query };
  const row = await world.create('File', into('columns'), given);
  await world.run(row, hourly(0));
  const folder = path.join(world.root, 'columns');
  const file = filesIn(folder).find((one) => one.endsWith('.jsonl')) as string;
  const rows = readFileSync(path.join(folder, file), 'utf8').trim().split('\n');
  expect(rows.map((one) => JSON.parse(one)).find(({ uuid }) => uuid === eventOf(3))).toMatchObject({
    listed: false,
  });
});

test('a run waits for the first count of a cohort', async () => {
  const paid = { key: 'plan', type: 'person', operator: 'exact', value: 'paid' };
  const properties = { type: 'OR', values: [{ type: 'AND', values: [paid] }] };
  const cohort = await storeCohort(world.pool, tenant.projectId, { name: 'paid', properties });
  const given = { project_id: tenant.projectId, filters: inCohort(cohort) };
  const row = await world.create('File', into('counted'), given);
  // Maintenance counts once a minute, and must not be faster than the run.
  const handle = await transaction(world.pool, async (client) => {
    await client.query('select from cohorts where id = $1 for update', [cohort]);
    const started = await world.start(row, hourly(0));
    const said = await eventually(async () => (await world.runsOf(row))[0]?.latest_error ?? undefined);
    expect(said).toBe(`The members of the cohort ${cohort} are not counted yet`);
    expect(filesIn(path.join(world.root, 'counted'))).toEqual([]);
    return started;
  });
  await countCohorts(world.pool, work);
  await handle.result();
  expect(exportedUuids(path.join(world.root, 'counted'))).toEqual([eventOf(1), eventOf(2)]);
});

test('a run fails at once if a cohort is gone', async () => {
  const cohort = await storeCohort(world.pool, tenant.projectId, { name: 'gone', isStatic: true });
  await world.pool.query('update cohorts set deleted = true where id = $1', [cohort]);
  const given = { project_id: tenant.projectId, filters: inCohort(listed, cohort) };
  const row = await world.create('File', into('gone'), given);
  await (await world.start(row, hourly(0))).result().catch(() => {});
  expect((await world.runsOf(row))[0]).toMatchObject({
    latest_error: `There is no cohort ${cohort} in this project, or it was deleted. Change the filters or the columns of this export.`,
  });
  expect(filesIn(path.join(world.root, 'gone'))).toEqual([]);
});
