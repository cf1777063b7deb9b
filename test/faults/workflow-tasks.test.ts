import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, test } from '@jest/globals';
import { createEgress } from '../../egress/egress.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { watchTaskFailures } from '../../worker/task-failures.ts';
import type { TaskFailures } from '../../worker/temporal-metrics.ts';
import { sluice } from '../support/cli.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { reservePort } from '../support/ports.ts';
import { programsForFile } from '../support/programs.ts';
import { allocateNamespace, connectTo } from '../support/temporal.ts';

const programs = programsForFile();
const database = databaseForFile();
const told: { key: string; body: { event: string; details: Record<string, unknown> } }[] = [];
const webhook = createServer((request, response) => {
  let text = '';
  request.on('data', (chunk) => {
    text += chunk;
  });
  request.on('end', () => {
    told.push({ key: String(request.headers['idempotency-key']), body: JSON.parse(text) });
    response.writeHead(204).end();
  });
});
webhook.listen(0, '127.0.0.1');
await once(webhook, 'listening');
const url = `http://127.0.0.1:${(webhook.address() as AddressInfo).port}/`;
afterAll(() => {
  webhook.closeAllConnections();
  webhook.close();
});

test('the metrics of a worker tell of tasks, slots and waiting; tasks that fail are told to the operators and by doctor', async () => {
  const { address, namespace } = allocateNamespace();
  const metrics = await reservePort();
  const settings = {
    ...{ DATABASE_URL: database.url, TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace },
    ...{ SLUICE_METRICS_PORT: String(metrics), SLUICE_HOST: '127.0.0.1', SLUICE_LOG_LEVEL: 'info' },
    ...{ SLUICE_NOTICE_WEBHOOK: url, SLUICE_EGRESS_ALLOW: '127.0.0.1', SLUICE_TASK_QUEUE: 'broken' },
  };
  const worker = programs.start('worker/main.ts', settings);
  await eventually(async () => worker.output().includes('the worker polls'));
  const read = async () => (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
  const seen = async (pattern: RegExp) => eventually(async () => pattern.test(await read()));
  await seen(/^temporal_worker_task_slots_available\{[^}]*worker_type="WorkflowWorker"[^}]*\} [1-9]/m);
  await seen(
    /^temporal_workflow_task_schedule_to_start_latency_count\{[^}]*task_queue="broken"[^}]*\} [1-9]/m,
  );
  await seen(/^temporal_activity_schedule_to_start_latency_count\{[^}]*\} [1-9]/m);
  expect(await read()).not.toMatch(/^temporal_workflow_task_execution_failed\{/m);

  const client = await connectTo({ address, namespace });
  try {
    const handle = await client.workflow.start('ofAnotherVersion', {
      taskQueue: 'broken',
      workflowId: 'stuck',
    });
    await seen(
      /^temporal_workflow_task_execution_failed\{[^}]*workflow_type="ofAnotherVersion"[^}]*\} [1-9]/m,
    );
    await eventually(async () => told.length > 0);
    expect(told[0]?.key).toMatch(/^workflow-tasks-broken-\d{4}-/);
    expect(told[0]?.body).toMatchObject({
      event: 'temporal.workflow_tasks_failing',
      details: { task_queue: 'broken', workflow_types: ['ofAnotherVersion'], reasons: ['WorkflowError'] },
    });
    const { code, stdout } = await sluice(['doctor'], { ...settings, SLUICE_DATA_DIR: '/nowhere' });
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^WRONG {2}workflow tasks: 1 of \d+ running workflows stand still, .*: stuck \(ofAnotherVersion, attempt \d+\)\./m,
    );
    await handle.terminate();
  } finally {
    await client.connection.close();
  }
});

test('failures that pass by themselves are told to nobody, and those that last are told once', async () => {
  told.splice(0);
  let looks = 0;
  // One look of each: `x` finds failures. A third one is no chance any more.
  const script = '-x-x--';
  const failing: TaskFailures = { count: 2, workflowTypes: ['exportRun'], reasons: ['NonDeterminismError'] };
  const none: TaskFailures = { count: 0, workflowTypes: [], reasons: [] };
  let lasts = false;
  const egress = createEgress({ allow: '127.0.0.1' });
  const watch = watchTaskFailures({
    takeFailures() {
      looks += 1;
      return lasts || script[looks - 1] === 'x' ? failing : none;
    },
    ...{ taskQueue: 'q', operators: { egress, url }, lookEvery: 10 },
    logger: createLogger({ name: 'test', level: 'silent' }),
  });
  const after = (count: number) => eventually(async () => looks > count);
  await after(script.length + 5);
  expect(told).toEqual([]);
  lasts = true;
  await eventually(async () => told.length > 0);
  await after(looks + 20);
  expect(told).toHaveLength(1);
  await watch.close();
  await egress.close();
});
