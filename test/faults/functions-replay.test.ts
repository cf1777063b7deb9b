import { expect, test } from '@jest/globals';
import { replayWorldForFile } from '../functions/runtime/replay-world.ts';
import { sender } from '../functions/runtime/world.ts';
import { eventually } from '../support/eventually.ts';
import { type Program, programsForFile } from '../support/programs.ts';

const programs = programsForFile();
const world = replayWorldForFile({ delivers: false, worker: false });

const startWorker = (): Program => {
  const { config } = world.api;
  return programs.start('worker/main.ts', {
    DATABASE_URL: config.DATABASE_URL as string,
    TEMPORAL_ADDRESS: config.TEMPORAL_ADDRESS as string,
    TEMPORAL_NAMESPACE: config.TEMPORAL_NAMESPACE,
    SLUICE_LOG_LEVEL: 'info',
    SLUICE_EGRESS_ALLOW: '127.0.0.1',
    SLUICE_ENCRYPTION_KEYS: config.SLUICE_ENCRYPTION_KEYS as string,
    SLUICE_FUNCTION_LEASE_SECONDS: '15',
  });
};

test('workers are killed while a replay is under way: each event gets one invocation', async () => {
  const number = 8_000;
  const uuids: string[] = [];
  for (let hour = 0; hour < 4; hour += 1) {
    uuids.push(...(await world.store(`2026-03-01T0${hour}:00:00.000Z`, number / 4)));
  }
  const id = await world.create(
    sender(world.url(), { filters: { events: [{ id: 'order', type: 'events' }] } }),
  );
  let worker = startWorker();
  // It also registers what Temporal has to know of replays.
  await eventually(async () => worker.output().includes('the worker polls'));
  const { id: replay } = await world.begin(id, {
    ...{ after: '2026-03-01T00:00:00.000Z', before: '2026-03-02T00:00:00.000Z', rate_per_second: null },
  });
  const progress = async () => Number((await world.show(id, replay)).queued);
  let killed = 0;
  for (const share of [0.1, 0.4]) {
    await eventually(async () => (await progress()) > number * share);
    if ((await world.show(id, replay)).status !== 'running') break;
    worker.kill('SIGKILL');
    await worker.exited;
    killed += 1;
    worker = startWorker();
  }
  expect(killed).toBeGreaterThan(0);
  expect(await world.until(id, replay, 'completed')).toMatchObject({
    ...{ total: number, scanned: number, matched: number, queued: number },
  });
  await world.idle();
  const invocations = await world.history(id);
  expect(invocations.map((one) => one.event_uuid).sort()).toEqual(uuids.sort());
  const keys = new Set(world.arrivals.map(({ headers }) => headers['idempotency-key']));
  expect(keys.size).toBe(number);
});
