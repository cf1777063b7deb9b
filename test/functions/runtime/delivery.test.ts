import { beforeEach, describe, expect, test } from '@jest/globals';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile();
beforeEach(() => {
  world.arrivals.length = 0;
  world.answer((_arrival, response) => response.end('{"ok":true}'));
});
/** What has arrived, in the order of its ids: deliveries have none. */
const bodies = () => world.arrivals.map(({ body }) => JSON.parse(body)).sort((a, b) => a.id - b.id);

describe('a function that reacts to events', () => {
  test('each matching event arrives once, with its properties', async () => {
    const id = await world.create(
      sender(world.url(), { filters: { events: [{ id: 'paid', type: 'events' }] } }),
    );
    await world.capture([
      ...[1, 2, 3].map((number) => ({ event: 'paid', properties: { id: number } })),
      { event: 'seen', properties: { id: 4 } },
    ]);
    await world.idle();
    expect(bodies()).toEqual([1, 2, 3].map((number) => ({ name: 'paid', id: number })));
    expect(await world.totals(id)).toMatchObject({ succeeded: 3, triggered: 3, fetch: 3 });
    expect((await world.history(id)).map(({ status }) => status)).toEqual([
      'succeeded',
      'succeeded',
      'succeeded',
    ]);
  });
});
