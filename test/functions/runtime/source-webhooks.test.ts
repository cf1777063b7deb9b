import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { charge } from '../../../functions/rows/states.ts';
import { WATCHER } from '../../../functions/rules/watcher.ts';
import { createRunner } from '../../../functions/runner.ts';
import { eventually } from '../../support/eventually.ts';
import { runtimeForFile } from './world.ts';

const world = runtimeForFile({ starts: false });
let runtime: ReturnType<typeof world.start> | undefined;
const works = () => {
  runtime = world.start();
};
beforeAll(async () => {
  await world.api.app.ready();
});
beforeEach(async () => {
  if (runtime) await world.stop(runtime);
  runtime = undefined;
  world.arrivals.length = 0;
});

const FETCHING = `let answer := fetch(inputs.url, {'body': {'id': request.body.id, 'header': request.headers['x-own']}})
  postHogCapture({'event': 'fetched', 'distinct_id': 'ada', 'properties': {'ok': answer.body.ok, 'id': request.body.id}})
  return {'httpResponse': {'status': 200, 'body': 'never seen'}}`;
const create = (hog: string) =>
  world.create({
    ...{ type: 'source_webhook', name: 'Hook', hog },
    inputs_schema: [{ key: 'url', type: 'string', label: 'URL' }],
    inputs: { url: { value: world.url('target') } },
  });
const ask = async (id: string, body: object = {}) => {
  const answer = await world.api.app.inject({
    ...{ method: 'POST', url: `/public/webhooks/${id}`, payload: body, headers: { 'x-own': 'mine' } },
  });
  return [answer.statusCode, answer.body];
};
const events = async () => {
  const { rows } = await world.api.pool.query(
    "select properties from events where project_id = $1 and event = 'fetched' order by inserted_at",
    [world.anna.projectId],
  );
  return rows.map((row) => row.properties.id);
};
const spend = (id: string, cost: number) =>
  charge(world.api.pool, [{ projectId: world.anna.projectId, functionId: id, cost }], WATCHER);
const state = async (id: string, wanted: number) =>
  eventually(async () => {
    const { rows } = await world.api.pool.query('select state from function_states where function_id = $1', [
      id,
    ]);
    return rows[0]?.state === wanted;
  });

describe('a function that takes requests', () => {
  test('and makes requests itself is answered at once, and its request is made by workers', async () => {
    const id = await create(FETCHING);
    expect(await ask(id, { id: 1 })).toEqual([201, '{"status":"queued"}']);
    // Nothing has happened before a worker runs it from its beginning.
    expect([world.arrivals.length, await events()]).toEqual([0, []]);
    works();
    await eventually(async () => (await events()).length > 0);
    await world.idle();
    expect(await events()).toEqual([1]);
    expect(world.arrivals.map((one) => JSON.parse(one.body))).toEqual([{ id: 1, header: 'mine' }]);
    await eventually(async () => (await world.totals(id)).triggered === 1);
    expect(await world.totals(id)).toMatchObject({ succeeded: 1, fetch: 1 });
  });

  test('that takes long is put off when it is degraded, and refused when it is disabled', async () => {
    const id = await create(FETCHING);
    expect((await ask(id, { id: 2 }))[0]).toBe(201);
    await spend(id, 3_000);
    await state(id, 2);
    await eventually(async () => (await ask(id, { id: 3 }))[0] === 200);
    expect(await ask(id, { id: 4 })).toEqual([200, '']);
    works();
    await eventually(async () => (await events()).includes(4));
    const degraded = 'Function scheduled for future execution due to degraded state';
    await eventually(async () => (await world.logs(id)).some((one) => one.message === degraded));
    await spend(id, 9_000);
    await state(id, 3);
    await eventually(async () => (await ask(id, { id: 5 }))[0] === 429);
    expect(await ask(id, { id: 6 })).toEqual([429, '{"error":"Disabled"}']);
    await eventually(async () => ((await world.totals(id)).disabled_temporarily ?? 0) > 1);
    // Whoever saves it has it run again.
    await world.change(id, { name: 'Saved' });
    await eventually(async () => (await ask(id, { id: 7 }))[0] === 200);
    await eventually(async () => (await events()).includes(7));
    expect(await events()).not.toContain(6);
  });

  test('pays for the time of its program', async () => {
    const id = await create('for (let i := 0; i < 3000000; i := i + 1) {}\nreturn 1');
    await eventually(async () => {
      // On a slow machine its time is over before it ends, or no thread is free for it.
      expect([200, 500]).toContain((await ask(id))[0]);
      const { rows } = await world.api.pool.query(
        'select tokens from function_states where function_id = $1',
        [id],
      );
      return rows[0]?.tokens < 10_000;
    });
  });

  test('pays for it also where the program is ended from outside', async () => {
    const id = await create('while (true) {}');
    const functionRunner = createRunner({ threads: 1, timeoutMs: 150 });
    const app = await world.api.rebuild({ functionRunner });
    const { statusCode } = await app.inject({ method: 'POST', url: `/public/webhooks/${id}`, payload: {} });
    expect(statusCode).toBe(500);
    await eventually(async () => {
      const { rows } = await world.api.pool.query(
        'select tokens from function_states where function_id = $1',
        [id],
      );
      return rows[0]?.tokens < 10_000;
    });
    await app.close();
    await functionRunner.close();
  });

  test('keeps a bounded number of requests for later', async () => {
    const id = await create(FETCHING);
    await world.api.pool.query(
      `insert into function_queue (id, project_id, function_id, version, globals, clock, seed, due_at)
       select gen_random_uuid(), $1, $2, 1, '{}', now(), 1, now() + interval '1 day' from generate_series(1, 999)`,
      [world.anna.projectId, id],
    );
    expect((await ask(id, { id: 8 }))[0]).toBe(201);
    const [status, body] = await ask(id, { id: 9 });
    expect([status, JSON.parse(body as string).detail]).toEqual([
      503,
      'Too many requests wait for the function. Send it again.',
    ]);
  });

  test('whose program names nobody stores no event, and says so', async () => {
    const id = await create("fetch(inputs.url)\npostHogCapture({'event': 'nobody'})");
    expect((await ask(id))[0]).toBe(201);
    works();
    await eventually(async () =>
      (await world.logs(id)).some(
        (one) => one.message === 'An event was not captured: it has no distinct_id.',
      ),
    );
  });
});
