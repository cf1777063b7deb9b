import { beforeAll, describe, expect, test } from '@jest/globals';
import { charge, degradedFunctions, disabledFunctions, revive } from '../../../functions/rows/states.ts';
import { costOf, WATCHER } from '../../../functions/rules/watcher.ts';
import { eventually } from '../../support/eventually.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile();
const paid = () => sender(world.url(), { filters: { events: [{ id: 'paid', type: 'events' }] } });
const pay = (id: number) => ({ event: 'paid', properties: { id } });
const status = async (id: string) => {
  const path = `/api/projects/${world.anna.projectId}/hog_functions/${id}/`;
  return (await world.api.request(world.anna, 'GET', path)).json().status;
};
let id: string;
beforeAll(async () => {
  id = await world.create(paid());
});
const key = () => ({ projectId: world.anna.projectId, functionId: id });
const cost = (amount: number) => charge(world.api.pool, [{ ...key(), cost: amount }], WATCHER);
const over = () =>
  world.api.pool.query(
    "update function_states set disabled_until = clock_timestamp() - interval '1 second', tokens = 6000",
  );

test.each([
  [0, [], 0],
  [50, [100], 0],
  [1_000, [], 190],
  [0, [1_000], 4],
  [0, [5_000], 20],
  [0, [10_000, 10_000], 80],
])('a program of %s ms with requests of %j ms costs %s', (program, requests, tokens) => {
  expect(costOf(program, requests)).toBe(tokens);
});

describe('a function whose runs cost much', () => {
  test('is degraded, then disabled for a while, and what it misses can be run later', async () => {
    expect(await status(id)).toEqual({ state: 1, rating: 1, tokens: 10_000 });
    expect(await cost(1_000)).toEqual([]);
    expect((await status(id)).state).toBe(1);
    expect(await cost(2_000)).toEqual([{ ...key(), state: 2 }]);
    expect(await degradedFunctions(world.api.pool, WATCHER)).toEqual(new Set([id]));
    expect(await cost(8_000)).toEqual([{ ...key(), state: 3 }]);
    expect((await status(id)).state).toBe(3);
    await world.capture([pay(1)]);
    await world.idle();
    expect(world.arrivals).toHaveLength(0);
    expect(await world.history(id)).toMatchObject([
      { status: 'failed', error: expect.stringContaining('had taken too long') },
    ]);
    expect(await world.totals(id)).toEqual({ disabled_temporarily: 1 });
  });

  test('is on probation when its time is over, and is disabled for good the third time within a day', async () => {
    await over();
    expect((await status(id)).state).toBe(2);
    await world.capture([pay(2)]);
    await world.idle();
    expect(world.arrivals).toHaveLength(1);
    expect(await cost(9_000)).toEqual([{ ...key(), state: 3 }]);
    await over();
    expect(await cost(9_000)).toEqual([{ ...key(), state: 4 }]);
    await over();
    expect((await status(id)).state).toBe(4);
    const { seconds } =
      (await disabledFunctions(world.api.pool, [world.anna.projectId], WATCHER)).get(id) ?? {};
    expect(seconds).toBeNull();
    await world.capture([pay(3)]);
    await world.idle();
    expect(await world.totals(id)).toMatchObject({ disabled_permanently: 1 });
  });

  test('runs again when somebody saves it', async () => {
    await world.change(id, { description: 'looked at' });
    expect((await status(id)).state).toBe(2);
    world.arrivals.length = 0;
    await world.capture([pay(4)]);
    await world.idle();
    expect(world.arrivals).toHaveLength(1);
    await revive(world.api.pool, key(), WATCHER);
    expect((await status(id)).state).toBe(2);
  });

  test('becomes healthy again by itself', async () => {
    await world.api.pool.query(
      "update function_states set refilled_at = clock_timestamp() - interval '1 hour' where function_id = $1",
      [id],
    );
    expect(await cost(1)).toEqual([{ ...key(), state: 1 }]);
    expect((await status(id)).rating).toBeGreaterThan(0.99);
  });
});

test('what a run takes is charged: a slow target degrades its function, which is told in the log', async () => {
  const slow = await world.create({
    hog: 'let n := 0; while (n < 1000000) { n := n + 1 }',
    filters: { events: [{ id: 'slow', type: 'events' }] },
  });
  await world.api.pool.query(
    'insert into function_states (project_id, function_id, tokens) values ($1, $2, 8001)',
    [world.anna.projectId, slow],
  );
  // On a slow machine some runs take longer than they may, and are tried again much later. They are charged, too. Meanwhile tokens
  // come back, so there are more runs if they have not taken enough.
  const { tokens } = await eventually(async () => {
    await world.capture(Array.from({ length: 6 }, () => ({ event: 'slow' })));
    await eventually(async () => (await world.history(slow)).length > 0);
    await world.idle();
    const now = await status(slow);
    return now.state === 2 && now;
  });
  expect(tokens).toBeLessThan(8_000);
  await eventually(async () => {
    const messages = (await world.logs(slow)).map(({ message }) => message);
    return messages.includes('The function takes long. Others come first until it is faster.');
  });
});
