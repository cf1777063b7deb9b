import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { knownCohorts } from '../../cohorts/reads/known-cohorts.ts';
import { listActivity } from '../../db/activity-log.ts';
import { Turns } from '../../db/turns.ts';
import { createEgress, type Egress } from '../../egress/egress.ts';
import { backfillExport } from '../../exports/commands/backfill.ts';
import { cancelBackfill, cancelRun } from '../../exports/commands/cancel.ts';
import { changeExport } from '../../exports/commands/change.ts';
import { createExport } from '../../exports/commands/create.ts';
import type { ExportCommandDependencies } from '../../exports/commands/dependencies.ts';
import { pauseExport, unpauseExport } from '../../exports/commands/pause.ts';
import { previewExport, previewNewExport } from '../../exports/commands/preview.ts';
import { removeExport } from '../../exports/commands/remove.ts';
import { retryRun } from '../../exports/commands/retry.ts';
import { runExport } from '../../exports/commands/run-now.ts';
import {
  listTestSteps,
  testDestination,
  testExportDestination,
} from '../../exports/commands/test-destination.ts';
import { intervalToVerify, verifyExport } from '../../exports/commands/verify.ts';
import { findBackfill } from '../../exports/rows/backfills.ts';
import { type BatchExportRow, findBatchExportById, keyOf } from '../../exports/rows/batch-exports.ts';
import { startRun } from '../../exports/rows/runs.ts';
import { createCompiler, type ModelCompiler } from '../../models/index.ts';
import { Refusal } from '../../refusals.ts';
import { parseKeyring } from '../../secrets/envelope.ts';
import { SYSTEM } from '../../tenancy/actor.ts';
import { createTenant, type Tenant } from '../support/api.ts';
import { eventually, PATIENCE } from '../support/eventually.ts';
import { insertEvents } from '../support/rows.ts';
import { exportWorldForFile, HOUR } from './support.ts';

let compiler: ModelCompiler;
let egress: Egress;
afterAll(async () => {
  await Promise.all([compiler?.close(), egress?.close()]);
});
// The worker comes later: until then, what the commands start stays as they leave it.
const world = exportWorldForFile({ worker: false });
let deps: ExportCommandDependencies;
let anna: Tenant;
beforeAll(async () => {
  anna = await createTenant(world.pool, 'Anna');
  compiler = createCompiler({ threads: 1, timeoutMs: PATIENCE });
  egress = createEgress({ allow: world.config.SLUICE_EGRESS_ALLOW });
  deps = {
    ...{
      pool: world.pool,
      reader: world.reader,
      compiling: new Turns({ atOnce: 2 }),
      compiler,
      egress,
      exportRoot: world.root,
      temporal: world.schedules.exports,
    },
    mostExports: 1_000,
    knownCohorts,
    keyring: parseKeyring(world.config.SLUICE_ENCRYPTION_KEYS as string),
    logger: {
      warn: (about, message) => {
        throw Object.assign(new Error(message), about);
      },
    },
  };
});

const now = Math.floor(Date.now() / HOUR) * HOUR;
const iso = (hours: number) => new Date(now + hours * HOUR).toISOString();
const utc = (hours: number) => iso(hours).replace('.000Z', 'Z');
const last = { start_at: iso(-1), end_at: iso(0) };

test('Sluice itself creates, changes, pauses, runs, backfills, verifies and removes an export without HTTP', async () => {
  await insertEvents(
    world.pool,
    Array.from({ length: 10 }, (_, n) => ({ project_id: anna.projectId, timestamp: iso(-1 + n / 10) })),
  );
  const fresh = async (id: string) => (await findBatchExportById(world.pool, id)) as BatchExportRow;
  // On a busy machine Temporal tells of a change of a schedule a moment after it has taken it.
  const becomesPaused = (id: string, paused: boolean) =>
    eventually(async () => {
      const { state } = await world.client.schedule.getHandle(id).describe();
      return state.paused === paused;
    });

  // Before there is an export.
  const destination = { type: 'File', config: { directory: 'lake' } };
  const input = { name: 'Lake', interval: 'hour', destination } as const;
  const planned = await previewNewExport(deps, anna.projectId, input, 3);
  expect([planned.rows.length, planned.estimate.rows]).toEqual([3, 10]);
  expect(listTestSteps('File').length).toBeGreaterThan(0);
  expect((await testDestination(deps, SYSTEM, anna, destination, { step: 0 })).result).toMatchObject({
    status: 'Passed',
  });

  // The export and its settings.
  const made = await createExport(deps, SYSTEM, anna.projectId, input);
  const key = keyOf(made);
  await becomesPaused(made.id, false);
  await changeExport(deps, SYSTEM, key, { name: 'Sea' });
  await expect(changeExport(deps, SYSTEM, key, { model: 'persons' })).rejects.toThrow(Refusal);
  await pauseExport(deps, SYSTEM, key);
  await becomesPaused(made.id, true);
  await world.pool.query('update batch_exports set last_paused_at = $2 where id = $1', [made.id, iso(-1.5)]);
  const begun = await unpauseExport(deps, SYSTEM, await fresh(made.id), { backfill: true });
  expect(begun).toMatchObject({ isNew: true, backfill: { start_at: utc(-2), end_at: utc(0) } });
  await becomesPaused(made.id, false);
  const row = await fresh(made.id);
  expect([row.name, row.paused]).toEqual(['Sea', false]);
  expect((await testExportDestination(deps, SYSTEM, row, undefined, { step: 0 })).result).toMatchObject({
    status: 'Passed',
  });
  expect((await previewExport(deps, row, last, 5)).rows).toHaveLength(5);

  // What is under way.
  if (!begun) throw new Error('nothing was missed');
  await cancelBackfill(deps, SYSTEM, begun.backfill);
  const { interval, ...workflow } = await runExport(deps, SYSTEM, row, last);
  // What the first activity of the run does; no worker is there yet to do it.
  const { run } = await startRun(world.pool, { ...key, ...workflow, ...interval });
  await cancelRun(deps, SYSTEM, run);
  await expect(cancelRun(deps, SYSTEM, run)).rejects.toThrow(
    "Cannot cancel a run that is in 'Cancelled' status",
  );

  // What is exported.
  await world.startWorker();
  const over = async (backfillId: string) =>
    eventually(async () => {
      const found = await findBackfill(world.pool, { projectId: anna.projectId, backfillId });
      return found?.status === 'Completed';
    });
  const retried = await retryRun(deps, SYSTEM, row, { ...run, status: 'Cancelled' });
  await over(retried.backfill.id);
  const { backfill } = await backfillExport(deps, SYSTEM, row, { start_at: iso(-3), end_at: iso(-1) });
  await over(backfill.id);
  const newest = await intervalToVerify(deps, row, {});
  expect(newest).toEqual({ start: iso(-1), end: iso(0) });
  const report = await verifyExport(deps, SYSTEM, row, newest, { waitMilliseconds: 120_000 });
  expect(report).toMatchObject({ verdict: 'same', destination: { rows: 10 } });
  await removeExport(deps, SYSTEM, row);
  await expect(world.client.schedule.getHandle(row.id).describe()).rejects.toThrow();
  await expect(removeExport(deps, SYSTEM, row)).rejects.toThrow('Not found.');

  const log = await listActivity(world.pool, { projectId: anna.projectId }, { limit: 100, offset: 0 });
  expect(log.rows.reverse().map((one) => one.activity)).toEqual([
    ...['tested', 'created', 'updated', 'updated', 'updated', 'backfilled', 'tested'],
    ...['cancelled', 'started', 'cancelled', 'backfilled', 'backfilled', 'deleted'],
  ]);
  // The first test was one of a destination that is not stored.
  for (const [index, entry] of log.rows.entries()) {
    expect(entry).toMatchObject({
      ...{ actor: 'system', user_id: null, personal_api_key_id: null, ip: null, request_id: null },
      ...{ scope: 'BatchExport', item_id: index === 0 ? '' : row.id, organization_id: anna.organizationId },
    });
  }
});
