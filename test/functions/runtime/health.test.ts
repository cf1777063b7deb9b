import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createEgress, type Egress } from '../../../egress/egress.ts';
import { diagnoseFunctions } from '../../../functions/runs/diagnose.ts';
import {
  type NoticeRunDependencies,
  sendFunctionNotice,
  tellOfFunctions,
} from '../../../functions/runs/notices.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { replayWorldForFile, unstopped } from './replay-world.ts';
import { sender } from './world.ts';

// Nothing is delivered here: it stays there to be counted.
const world = replayWorldForFile({ delivers: false });
let egress: Egress;
let deps: NoticeRunDependencies;
let behind: string;
let disabled: string;
afterAll(() => egress?.close());
beforeAll(async () => {
  const { pool, schedules, config } = world.api;
  egress = createEgress({ allow: '127.0.0.1' });
  deps = {
    ...{ pool, temporal: schedules.functions, logger: createLogger({ name: 'test', level: 'silent' }) },
    ...{
      operators: { egress, url: world.url('notice') },
      behindSeconds: 3_600,
      site: config.SLUICE_PUBLIC_URL,
    },
  };
  behind = await world.create(sender(world.url(), { name: 'Far behind' }));
  disabled = await world.create(sender(world.url()));
  const paused = await world.create(sender(world.url(), { paused: true }));
  const fine = await world.create(sender(world.url()));
  for (const [id, hours] of [
    [behind, 26],
    [paused, 26],
    [fine, 0],
  ]) {
    await pool.query(
      `insert into function_queue (id, project_id, function_id, version, clock, seed, created_at)
       select gen_random_uuid(), $1, $2, 1, now(), 1, now() - $3 * interval '1 hour' + n * interval '1 minute'
       from generate_series(1, 3) n`,
      [world.anna.projectId, id, hours],
    );
  }
  await pool.query(
    `insert into function_states (project_id, function_id, tokens, state, disabled_until)
     values ($1, $2, 0, 3, now() + interval '10 minutes')`,
    [world.anna.projectId, disabled],
  );
  await pool.query(
    `insert into function_metrics (project_id, function_id, hour, kind, name, count)
     values ($1, $2, date_trunc('hour', now(), 'UTC'), 'success', 'succeeded', 6),
       ($1, $2, date_trunc('hour', now(), 'UTC'), 'failure', 'failed', 2),
       ($1, $2, date_trunc('hour', now(), 'UTC') - interval '3 days', 'failure', 'failed', 50)`,
    [world.anna.projectId, behind],
  );
});

test('the health of a function says what waits and what succeeds', async () => {
  const { status, body } = await world.ask(behind, 'GET', 'health/');
  expect(status).toBe(200);
  expect(body).toMatchObject({
    waiting: 3,
    positions: 0,
    succeeded: 6,
    failed: 2,
    success_rate: 0.75,
    lost: 0,
  });
  expect(Date.parse(body.oldest_waiting_at as string)).toBeLessThan(Date.now() - 25 * 3_600_000);
  const none = await world.ask(disabled, 'GET', 'health/');
  expect(none.body).toMatchObject({ waiting: 0, oldest_waiting_at: null, success_rate: null });
});

test('operators hear once of a function that is disabled, or whose oldest invocation waits for too long', async () => {
  // The worker of this file may have told already; nobody tells twice.
  await tellOfFunctions(deps, unstopped());
  expect(await tellOfFunctions(deps, unstopped())).toBe(0);
  const told: string[] = [];
  for await (const { type, memo: _memo, workflowId } of world.client.workflow.list()) {
    if (type === 'notice') told.push(workflowId.slice(0, workflowId.indexOf('.') + 7));
  }
  expect(told.sort()).toEqual([`${behind}-function.behind`, `${disabled}-function.disabl`].sort());
  expect(await tellOfFunctions({ ...deps, operators: undefined }, unstopped())).toBe(0);
});

test('a notice says how the function fares, under a key', async () => {
  const { projectId } = world.anna;
  const notice = {
    event: 'function.behind',
    projectId,
    functionId: behind,
    at: '2026-01-01T00:00:00Z',
  } as const;
  await sendFunctionNotice(deps, notice, 'the key');
  const [arrival] = world.arrivals.filter(({ path }) => path === 'notice');
  expect(arrival?.headers['idempotency-key']).toBe('the key');
  expect(JSON.parse(arrival?.body as string)).toMatchObject({
    ...{ event: 'function.behind', at: '2026-01-01T00:00:00Z', project: { id: projectId } },
    function: { id: behind, name: 'Far behind', enabled: true, disabled_for_good: false },
    details: { waiting: 3, succeeded: 6, failed: 2 },
    urls: { function: expect.stringContaining(`/hog_functions/${behind}/`) },
  });
  world.answer((_arrival, response) => {
    response.statusCode = 503;
    response.end();
  });
  await expect(sendFunctionNotice(deps, notice, 'the key')).rejects.toMatchObject({
    name: 'NoticeError',
    again: true,
  });
  // Of a function that is gone nobody hears.
  await sendFunctionNotice(deps, { ...notice, functionId: '00000000-0000-4000-8000-000000000001' }, 'k');
});

test('doctor tells of functions that are behind, and of what they lost', async () => {
  const [lost, late] = await diagnoseFunctions(world.api.pool);
  expect(lost).toMatchObject({ ok: true });
  expect(late).toMatchObject({ ok: false });
  expect(late?.sentence).toContain(behind);
  await world.api.pool.query(
    "insert into function_losses (project_id, function_id, partition, events) values ($1, null, 'events_20260101', 12)",
    [world.anna.projectId],
  );
  const [now] = await diagnoseFunctions(world.api.pool);
  expect(now).toMatchObject({ ok: false });
  expect(now?.sentence).toContain('12 events');
});
