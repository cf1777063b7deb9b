import { afterAll, expect, test } from '@jest/globals';
import { runtimeForFile, sender } from '../functions/runtime/world.ts';
import { eventually } from '../support/eventually.ts';
import { type Program, programsForFile } from '../support/programs.ts';

// What happens to a worker after the target has answered, and before the result is stored.
const NUMBER = 40;
const programs = programsForFile();
const world = runtimeForFile({ starts: false });
afterAll(() => world.answer((_arrival, response) => response.end('{}')));

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
const on = (event: string) =>
  sender(world.url(event), { filters: { events: [{ id: event, type: 'events' }] } });
const send = (event: string) =>
  world.capture(Array.from({ length: NUMBER }, (_, id) => ({ event, properties: { id } })));
/** The keys under which each event has arrived, one for each arrival. */
const keysOf = (path: string) =>
  Map.groupBy(
    world.arrivals.filter((one) => one.path === path),
    ({ body }) => JSON.parse(body).id as number,
  );

/** Each event arrived `times` times under one key, and is recorded once. */
async function expectOneRecord(id: string, event: string, times: number): Promise<void> {
  const arrived = [...keysOf(event).values()];
  expect(arrived.map((all) => all.length)).toEqual(Array(NUMBER).fill(times));
  expect(arrived.filter((all) => new Set(all.map((one) => one.headers['idempotency-key'])).size > 1)).toEqual(
    [],
  );
  const history = await world.history(id);
  expect(history.map((one) => one.status)).toEqual(Array(NUMBER).fill('succeeded'));
  expect(new Set(history.map((one) => one.event_uuid)).size).toBe(NUMBER);
  expect(await world.totals(id)).toMatchObject({ succeeded: NUMBER, triggered: NUMBER });
}

test('a worker is killed when targets have answered and no result is stored: each event is sent again under its key', async () => {
  const { pool } = world.api;
  const id = await world.create(on('killed'));
  const answers: (() => void)[] = [];
  world.answer((_arrival, response) => void answers.push(() => response.end('{}')));
  const first = startWorker();
  await send('killed');
  await eventually(async () => answers.length === NUMBER);
  const holder = await pool.connect();
  try {
    // Whoever stores a result has to wait from now on.
    await holder.query('begin; lock table function_invocations in share mode');
    world.answer((_arrival, response) => response.end('{}'));
    for (const answer of answers) answer();
    const storing = async () => {
      const { rows } = await pool.query(
        `select array_agg(pid) as pids from pg_locks where relation = 'function_invocations'::regclass and not granted
           and database = (select oid from pg_database where datname = current_database())`,
      );
      return (rows[0].pids as number[] | null) ?? undefined;
    };
    await eventually(storing);
    first.kill('SIGKILL');
    await first.exited;
    // A server that waits for a lock does not notice that its client is gone: it would store the result nevertheless.
    await pool.query('select pg_terminate_backend(pid) from unnest($1::int[]) as pid', [await storing()]);
    await eventually(async () => (await storing()) === undefined);
    expect(await world.history(id)).toEqual([]);
  } finally {
    await holder.query('rollback');
    holder.release();
  }
  const second = startWorker();
  await world.idle();
  second.kill('SIGTERM');
  expect((await second.exited).code).toBe(0);
  await expectOneRecord(id, 'killed', 2);
  await world.change(id, { enabled: false });
});

test('a worker stands still until another has taken over, and what it says late counts for nothing', async () => {
  const id = await world.create(on('stalled'));
  const answers: (() => void)[] = [];
  world.answer((_arrival, response) => void answers.push(() => response.end('{}')));
  const first = startWorker();
  await send('stalled');
  await eventually(async () => answers.length === NUMBER);
  first.kill('SIGSTOP');
  world.answer((_arrival, response) => response.end('{}'));
  // They wait in its sockets until it wakes up.
  for (const answer of answers) answer();
  const second = startWorker();
  await world.idle();
  const before = await world.history(id);
  first.kill('SIGCONT');
  for (const worker of [first, second]) {
    worker.kill('SIGTERM');
    expect((await worker.exited).code).toBe(0);
  }
  await expectOneRecord(id, 'stalled', 2);
  expect(await world.history(id)).toEqual(before);
  await world.change(id, { enabled: false });
});
