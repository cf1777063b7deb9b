import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ScheduleNotFoundError } from '@temporalio/client';
import { listActivity } from '../../db/activity-log.ts';
import { sealSettings } from '../../exports/reads/settings.ts';
import { type BatchExportRow, findBatchExportById, keyOf } from '../../exports/rows/batch-exports.ts';
import { findRun } from '../../exports/rows/run-lists.ts';
import { markRunEnded, startRun } from '../../exports/rows/runs.ts';
import { parseKeyring } from '../../secrets/envelope.ts';
import { createTenant, type Tenant } from '../support/api.ts';
import { sluice } from '../support/cli.ts';
import { reservePort } from '../support/ports.ts';
import { insertEvents } from '../support/rows.ts';
import { exportWorldForFile, HOUR } from './support.ts';

// No worker: what the commands start stays as they leave it.
const world = exportWorldForFile({ worker: false });
const sluiceHere = (args: string[], env: Record<string, string> = {}) =>
  sluice(args, {
    DATABASE_URL: world.config.DATABASE_URL as string,
    TEMPORAL_ADDRESS: world.config.TEMPORAL_ADDRESS as string,
    TEMPORAL_NAMESPACE: world.config.TEMPORAL_NAMESPACE,
    SLUICE_DATA_DIR: path.join(world.root, 'data'),
    ...env,
  });
const run = (args: string[], env?: Record<string, string>) => sluiceHere(['exports', ...args], env);
const said = (stdout: string) => ({ code: 0, stdout: `${stdout}\n`, stderr: '' });
const refused = (message: string) => ({ code: 1, stdout: '', stderr: `error: ${message}\n` });
const UUID = '[0-9a-f-]{36}';
const NOBODY = '01900000-0000-7000-8000-000000000001';

const now = Math.floor(Date.now() / HOUR) * HOUR;
const iso = (hours: number) => new Date(now + hours * HOUR).toISOString();
const utc = (hours: number) => iso(hours).replace('.000Z', 'Z');
let anna: Tenant;
let lake: BatchExportRow;
beforeAll(async () => {
  anna = await createTenant(world.pool, 'Anna');
  lake = await create({});
});

const create = (given: object) =>
  world.create('NoOp', {}, { project_id: anna.projectId, name: 'Lake', ...given });
const fresh = async () => (await findBatchExportById(world.pool, lake.id)) as BatchExportRow;
const isPaused = async (id: string) => (await world.client.schedule.getHandle(id).describe()).state.paused;
const isAskedToStop = async (workflowId: string) => {
  const { events } = await world.client.workflow.getHandle(workflowId).fetchHistory();
  return (events ?? []).some((one) => one.workflowExecutionCancelRequestedEventAttributes);
};
const lastActivity = async () => {
  const { rows } = await listActivity(
    world.pool,
    { organizationId: anna.organizationId },
    { limit: 1, offset: 0 },
  );
  const [{ id: _id, at: _at, ...entry }] = rows as [(typeof rows)[number]];
  return entry;
};
const byOperator = (activity: string, detail: object, itemId = lake.id) => ({
  ...{ organization_id: anna.organizationId, project_id: anna.projectId, actor: 'operator' },
  ...{ user_id: null, personal_api_key_id: null, ip: null, request_id: null },
  ...{ scope: 'BatchExport', item_id: itemId, activity, detail },
});

/** What the first activity of a run does; no worker is there to do it. */
async function begin(workflowId: string, workflowRunId: string, start: string, end: string) {
  const begun = await startRun(world.pool, { ...keyOf(lake), workflowId, workflowRunId, start, end });
  return begun.run;
}

test('pausing and unpausing change the row, the schedule and the activity log', async () => {
  const change = (before: boolean) => ({ changes: [{ field: 'paused', before, after: !before }] });
  expect(await run(['pause', 'Lake'])).toEqual(said('Lake is paused.'));
  expect([(await fresh()).paused, await isPaused(lake.id)]).toEqual([true, true]);
  expect(await lastActivity()).toEqual(byOperator('updated', change(false)));

  expect(await run(['unpause', lake.id])).toEqual(said('Lake is resumed.'));
  expect([(await fresh()).paused, await isPaused(lake.id)]).toEqual([false, false]);
  expect(await lastActivity()).toEqual(byOperator('updated', change(true)));
});

test('unpausing with a backfill names the backfill', async () => {
  const held = await create({ name: 'Held', paused: true, last_paused_at: iso(-2.5) });
  const { code, stdout } = await run(['unpause', 'Held', '--backfill']);
  const sentence = new RegExp(
    `^Held is resumed; the backfill (${UUID}) exports what it missed, ${utc(-3)} – ${utc(0)}\\.\n$`,
  );
  expect([code, stdout]).toEqual([0, expect.stringMatching(sentence)]);
  const [, id] = sentence.exec(stdout) as unknown as [string, string];
  const about = { backfill: id, start_at: utc(-3), end_at: utc(0) };
  expect(await lastActivity()).toEqual(byOperator('backfilled', about, held.id));
});

test('running now starts a run, which can be cancelled once', async () => {
  await insertEvents(
    world.pool,
    [iso(-0.5), iso(0)].map((timestamp) => ({ project_id: anna.projectId, timestamp })),
  );
  const started = await run(['run', 'Lake', '--json']);
  expect([started.code, started.stderr]).toEqual([0, '']);
  const { workflow_id: workflowId, workflow_run_id: workflowRunId, ...interval } = JSON.parse(started.stdout);
  const { data_interval_start: start, data_interval_end: end } = interval;
  expect(Date.parse(end) - Date.parse(start)).toBe(HOUR);
  const { type, runId } = await world.client.workflow.getHandle(workflowId).describe();
  expect([type, runId]).toEqual(['exportRun', workflowRunId]);
  expect(await lastActivity()).toEqual(byOperator('started', interval));

  const begun = await begin(workflowId, workflowRunId, start, end);
  expect(await run(['cancel', begun.id])).toEqual(said(`Cancelled the run of Lake for ${start} – ${end}.`));
  expect(await findRun(world.pool, { projectId: anna.projectId, runId: begun.id })).toMatchObject({
    ...{ status: 'Cancelled', latest_error: 'Cancelled by the operator.' },
  });
  expect(await isAskedToStop(workflowId)).toBe(true);
  expect(await lastActivity()).toEqual(byOperator('cancelled', { run: begun.id }));
  expect(await run(['cancel', begun.id])).toEqual(
    refused("Cannot cancel a run that is in 'Cancelled' status"),
  );
});

test('a backfill is begun once, and cancelled with its runs', async () => {
  const range = ['--from', utc(-7), '--to', utc(-5)];
  const { code, stdout } = await run(['backfill', 'Lake', ...range]);
  const sentence = new RegExp(`^The backfill (${UUID}) of Lake exports ${utc(-7)} – ${utc(-5)}\\.\n$`);
  expect([code, stdout]).toEqual([0, expect.stringMatching(sentence)]);
  const [, id] = sentence.exec(stdout) as unknown as [string, string];
  const workflowId = `${lake.id}-Backfill-${iso(-7)}-${iso(-5)}`;
  expect((await world.client.workflow.getHandle(workflowId).describe()).type).toBe('exportBackfill');
  const about = { backfill: id, start_at: utc(-7), end_at: utc(-5) };
  expect(await lastActivity()).toEqual(byOperator('backfilled', about));
  const again = await run(['backfill', 'Lake', ...range, '--json']);
  expect(JSON.parse(again.stdout)).toEqual({
    ...{ backfill_id: id, workflow_id: workflowId, start_at: utc(-7), end_at: utc(-5) },
    ...{ total_runs: 2, is_new: false },
  });
  expect(await run(['cancel', id])).toEqual(
    said(`Cancelled the backfill of Lake for ${utc(-7)} – ${utc(-5)}, with its runs.`),
  );
  expect(await isAskedToStop(workflowId)).toBe(true);
  expect(await lastActivity()).toEqual(byOperator('cancelled', { backfill: id }));
});

test('a run that failed is retried as a backfill', async () => {
  const over = await begin('x', 'x', iso(-6), iso(-5));
  await markRunEnded(world.pool, { projectId: anna.projectId, runId: over.id }, 'Failed', 'no such bucket');
  const { code, stdout } = await run(['retry', over.id]);
  const sentence = new RegExp(`^The backfill (${UUID}) exports ${utc(-6)} – ${utc(-5)} of Lake again\\.\n$`);
  expect([code, stdout]).toEqual([0, expect.stringMatching(sentence)]);
  const [, id] = sentence.exec(stdout) as unknown as [string, string];
  const about = { backfill: id, start_at: utc(-6), end_at: utc(-5) };
  expect(await lastActivity()).toEqual(byOperator('backfilled', about));
});

test('deleting needs --yes', async () => {
  const gone = await create({ name: 'Gone' });
  expect(await run(['delete', 'Gone'])).toEqual(
    refused(`To delete the batch export Gone (${gone.id}) for good, repeat the command with --yes.`),
  );
  await world.schedules.exports.sync(gone);
  expect(await run(['delete', 'Gone', '--yes'])).toEqual(said('Deleted Gone. Exported data stays.'));
  await expect(isPaused(gone.id)).rejects.toThrow(ScheduleNotFoundError);
  expect(await lastActivity()).toEqual(byOperator('deleted', { name: 'Gone' }, gone.id));
});

describe('what a command cannot do', () => {
  test.each<[string[], string]>([
    [['pause', 'x'], 'There is no batch export called x; `npx sluice exports` lists them.'],
    [['retry', 'x'], 'There is no run with the id x.'],
    [['cancel', NOBODY], `There is no run or backfill with the id ${NOBODY}.`],
    [
      ['backfill', 'Lake', '--from', utc(2), '--to', utc(1)],
      "The initial backfill datetime 'start_at' must be before 'end_at'",
    ],
  ])('%j is one sentence', async (args, message) => {
    expect(await run(args)).toEqual(refused(message));
  });

  test('without Temporal the row is changed, and a run is not started', async () => {
    const port = await reservePort();
    const away = { TEMPORAL_ADDRESS: `127.0.0.1:${port}` };
    const [paused, started] = await Promise.all([run(['pause', 'Lake'], away), run(['run', 'Lake'], away)]);
    expect(paused).toEqual({
      ...said('Lake is paused.'),
      stderr: 'Temporal did not accept the change; maintenance repeats it within a minute\n',
    });
    expect((await fresh()).paused).toBe(true);
    expect(started).toEqual(
      refused('Temporal does not answer, or denies access; `npx sluice doctor` says more.'),
    );
  });

  test('what needs Temporal tells why Temporal refuses', async () => {
    const wrong = { TEMPORAL_NAMESPACE: 'nowhere' };
    const verify = ['verify', lake.id, '--from', iso(-2), '--to', iso(-1)];
    await world.pool.query('update batch_exports set scheduled_from = $2, created_at = $2 where id = $1', [
      lake.id,
      iso(-10),
    ]);
    const [started, verified] = await Promise.all([run(['run', 'Lake'], wrong), sluiceHere(verify, wrong)]);
    for (const { code, stdout, stderr } of [started, verified]) {
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/: Namespace .*nowhere/);
    }
  });
});

test('testing a destination runs its steps from here, and says whose disk it wrote to', async () => {
  const files = await create({ name: 'Files', destination_type: 'File', config: { directory: 'tested' } });
  const root = { SLUICE_EXPORT_ROOT: world.root };
  expect(await run(['test', 'Files'], root)).toEqual(
    said(
      'Passed: Write to the directory. Wrote and deleted a file on the disk of the machine of this command. Runs write on the disk of their worker: SLUICE_EXPORT_ROOT must be the same directory for both.',
    ),
  );
  expect(await lastActivity()).toEqual(
    byOperator(
      'tested',
      { destination: 'File', step: 'Write to the directory', address: { directory: 'tested' } },
      files.id,
    ),
  );
  const away = await create({
    name: 'Away',
    ...sealSettings(parseKeyring(world.config.SLUICE_ENCRYPTION_KEYS as string), NOBODY, {
      type: 'HTTP',
      config: { url: `http://127.0.0.1:${await reservePort()}/batch/`, token: 'phc_canary' },
    }),
    id: NOBODY,
  });
  const failed = await run(['test', away.id, '--json'], {
    SLUICE_ENCRYPTION_KEYS: world.config.SLUICE_ENCRYPTION_KEYS as string,
    SLUICE_EGRESS_ALLOW: '127.0.0.1',
  });
  expect(failed.code).toBe(1);
  // The second step is not run.
  expect(JSON.parse(failed.stdout).steps).toEqual([
    expect.objectContaining({
      name: 'Reach the receiver',
      result: { status: 'Failed', message: expect.stringContaining('the connection was refused') },
    }),
  ]);
  expect(JSON.stringify(failed)).not.toContain('canary');
});
