import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { runtimeForFile, sender } from '../functions/runtime/world.ts';
import { eventually } from '../support/eventually.ts';
import { type Program, programsForFile } from '../support/programs.ts';

const programs = programsForFile();
const world = runtimeForFile({ starts: false });

const startWorker = (): Program =>
  programs.start('worker/main.ts', {
    DATABASE_URL: world.api.config.DATABASE_URL as string,
    // Functions need no Temporal.
    TEMPORAL_ADDRESS: '127.0.0.1:1',
    SLUICE_LOG_LEVEL: 'error',
    SLUICE_EGRESS_ALLOW: '127.0.0.1',
    SLUICE_ENCRYPTION_KEYS: world.api.config.SLUICE_ENCRYPTION_KEYS as string,
    SLUICE_FUNCTION_LEASE_SECONDS: '15',
  });

test('workers are killed again and again: each event arrives, and one that arrives twice has the same key', async () => {
  const id = await world.create(
    sender(world.url(), { filters: { events: [{ id: 'paid', type: 'events' }] } }),
  );
  world.answer((_arrival, response) => void setTimeout(() => response.end('{}'), 20));
  const number = 1_500;
  let workers = [startWorker(), startWorker()];
  let sent = 0;
  const capturing = (async () => {
    while (sent < number) {
      const batch = Array.from({ length: 50 }, (_, index) => ({
        event: 'paid',
        properties: { id: sent + index },
      }));
      sent += batch.length;
      await world.capture(batch);
      await pause(30);
    }
  })();
  for (let round = 0; round < 3; round += 1) {
    const before = world.arrivals.length;
    await eventually(async () => world.arrivals.length > before + 200);
    const [victim, other] = workers as [Program, Program];
    victim.kill('SIGKILL');
    await victim.exited;
    workers = [other, startWorker()];
  }
  await capturing;
  await world.idle();
  const arrived = new Map<number, Set<unknown>>();
  for (const { body, headers } of world.arrivals) {
    const { id: event } = JSON.parse(body);
    const keys = arrived.get(event) ?? new Set();
    arrived.set(event, keys.add(headers['idempotency-key']));
  }
  expect(arrived.size).toBe(number);
  expect([...arrived.values()].every((keys) => keys.size === 1)).toBe(true);
  const history = await world.history(id);
  expect(history).toHaveLength(number);
  expect(new Set(history.map((one) => one.event_uuid)).size).toBe(number);
  expect(await world.totals(id)).toMatchObject({ succeeded: number, triggered: number, fetch: number });
});
