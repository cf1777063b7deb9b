import { beforeAll, expect, test } from '@jest/globals';
import { registerBacklogMetrics } from '../../../functions/runs/metrics.ts';
import { createRegistry } from '../../../telemetry/metrics.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile({ starts: false });
const registry = createRegistry('test');
beforeAll(() => registerBacklogMetrics(registry, world.api.pool));

async function gauges(): Promise<Record<string, number>> {
  const all = await registry.getMetricsAsJSON();
  return Object.fromEntries(
    all
      .filter(({ name, values }) => name.startsWith('sluice_function_') && values.length > 0)
      .map(({ name, values }) => [
        name.replace('sluice_function_', ''),
        (values[0] as { value: number }).value,
      ]),
  );
}

test('metrics say how far functions are behind, and how much has failed', async () => {
  const { api, anna } = world;
  expect(await gauges()).toEqual({
    ...{
      events_lost: 0,
      waiting: 0,
      overdue_seconds: 0,
      failed_open: 0,
      batches_waiting: 0,
      behind_seconds: 0,
    },
  });
  const id = await world.create(sender(world.url()));
  await world.capture([{}, {}]);
  await api.pool.query("update function_batches set noted_at = now() - interval '90 seconds'");
  await api.pool.query(
    `insert into function_queue (id, project_id, function_id, version, globals, clock, seed, due_at)
     select gen_random_uuid(), $1, $2, 1, '{}', now(), 1, now() + number * interval '1 minute'
     from generate_series(-5, 4) as number`,
    [anna.projectId, id],
  );
  await api.pool.query(
    `insert into function_invocations (project_id, id, function_id, version, status, attempts, created_at, finished_at, dismissed_at)
     select $1, gen_random_uuid(), $2, 1, status, '[]', now(), now(), dismissed
     from (values ('failed', null::timestamptz), ('failed', null), ('failed', now()), ('succeeded', null)) as i (status, dismissed)`,
    [anna.projectId, id],
  );
  const found = await gauges();
  expect(found).toMatchObject({ waiting: 10, failed_open: 2, batches_waiting: 1 });
  expect(found.overdue_seconds).toBeGreaterThanOrEqual(300);
  expect(found.overdue_seconds).toBeLessThan(360);
  expect(found.behind_seconds).toBeGreaterThanOrEqual(90);
  expect(found.success_ratio).toBeUndefined();
  await api.pool.query("update function_queue set created_at = now() - interval '2 hours'");
  for (const [kind, count] of [
    ['success', 3],
    ['failure', 1],
  ]) {
    await api.pool.query(
      `insert into function_metrics (project_id, function_id, hour, kind, name, count)
       values ($1, $2, date_trunc('hour', now(), 'UTC'), $3, $3, $4)`,
      [anna.projectId, id, kind, count],
    );
  }
  const measured = await gauges();
  expect(measured.success_ratio).toBe(0.75);
  expect(measured.oldest_waiting_seconds).toBeGreaterThanOrEqual(7_200);
  const text = await registry.metrics();
  expect(text).toContain(
    `sluice_function_success_ratio{project="${anna.projectId}",function="${id}",process="test"} 0.75`,
  );
});
