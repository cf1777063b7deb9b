import { appendFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { ensureEventPartitions, partitionOf } from '../../db/event-partitions.ts';
import { MAINTENANCE } from '../../workflows/names.ts';
import { databaseForFile } from '../support/database.ts';
import { postgresSettings } from '../support/postgres-settings.ts';
import { programsForFile } from '../support/programs.ts';
import { insertEvents } from '../support/rows.ts';
import { exportWorldForFile, filesIn, HOUR } from './support.ts';
import { operatorForFile } from './whole-run.ts';

const DAYS = 30;
const programs = programsForFile();
const world = exportWorldForFile({ worker: false });
const target = databaseForFile();
const operator = operatorForFile(programs, world);
/** An hour of a week that ended longer ago than that, and one of today. */
const old = Math.floor(Date.now() / HOUR) * HOUR - (DAYS + 15) * 24 * HOUR;
const recent = Math.floor(Date.now() / HOUR) * HOUR - 2 * HOUR;
const iso = (instant: number) => new Date(instant).toISOString();

beforeAll(async () => {
  await ensureEventPartitions(world.pool, new Date(old), 1);
  const events = [old, recent].flatMap((start) =>
    Array.from({ length: 30 }, (_, index) => ({
      project_id: operator.tenant.projectId,
      timestamp: iso(start + index * 60_000),
    })),
  );
  await insertEvents(world.pool, events);
});

const verdictOf = (at: string, start: number) => operator.verify(at, { start_at: iso(start) });

test('events that are past their retention: what was exported of them is still what the run exported', async () => {
  const keeping = await world.startWorker();
  const files = await operator.create('File', { directory: 'lake' });
  const rows = await operator.create('Postgres', postgresSettings(target.url, 'lake'));
  for (const at of [files, rows]) {
    for (const start of [old, recent]) {
      expect(await operator.run(at, iso(start))).toMatchObject({
        status: 'Completed',
        records_completed: 30,
      });
      expect(await verdictOf(at, start)).toMatchObject({ verdict: 'same', source: { state: 'read' } });
    }
  }
  await keeping.stop();

  // From now on they are kept for so long.
  await world.startWorker({ SLUICE_EVENT_RETENTION_DAYS: String(DAYS) });
  await world.client.workflow.execute(MAINTENANCE, {
    workflowId: 'maintenance-of-the-test',
    taskQueue: world.config.SLUICE_TASK_QUEUE,
  });
  const { name } = partitionOf(new Date(old));
  const { rows: left } = await world.pool.query('select to_regclass($1) as partition', [name]);
  expect(left).toEqual([{ partition: null }]);

  expect(await verdictOf(files, old)).toMatchObject({
    verdict: 'expired',
    problems: [],
    source: { state: 'expired', rows: null },
    destination: { rows: 30, files: [{ state: 'same' }] },
  });
  expect(await verdictOf(rows, old)).toMatchObject({ verdict: 'expired', problems: [] });
  for (const at of [files, rows]) {
    expect(await verdictOf(at, recent)).toMatchObject({ verdict: 'same', source: { rows: 30 } });
    // The interval stays done: nothing is exported again over what is there.
    const query = `after=${iso(old)}&before=${iso(old + HOUR)}`;
    const { results: intervals } = await operator.ask('GET', `${at}intervals/?${query}`);
    expect(intervals).toMatchObject([{ state: 'done', records_completed: 30 }]);
  }

  // What is lost in the database is not lost where it was exported to.
  const folder = path.join(world.root, '@projects', String(operator.tenant.projectId), 'lake');
  const there = filesIn(folder);
  const { results } = await operator.ask('GET', `${files}runs/?ordering=created_at`);
  const retried = await operator.retry(files, results[0]);
  expect(retried).toMatchObject({ status: 'Failed' });
  expect(retried.latest_error).toMatch(/SLUICE_EVENT_RETENTION_DAYS \(30\).*stays as it is/);
  expect(filesIn(folder)).toEqual(there);
  expect(await verdictOf(files, old)).toMatchObject({ verdict: 'expired', problems: [] });
  expect(await operator.retry(files, results[1])).toMatchObject({ status: 'Completed' });

  // Retention excuses nothing at the destination.
  const file = there.find((one) => one.includes(iso(old).slice(0, 13)) && one.endsWith('.jsonl'));
  appendFileSync(path.join(folder, file as string), 'x');
  expect(await verdictOf(files, old)).toMatchObject({ verdict: 'differs', source: { state: 'expired' } });
});
