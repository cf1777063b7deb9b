import { expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile({ starts: false });

test('a host whose name leads to an allowed address and then to a private one gets nothing at the private one', async () => {
  // The tests allow 127.0.0.1, so it stands for a public address.
  const addresses = ['127.0.0.1', '169.254.169.254'];
  const asked: string[] = [];
  world.start({
    resolve: async (host) => {
      asked.push(host);
      return [{ address: addresses[Math.min(asked.length, addresses.length) - 1] as string, family: 4 }];
    },
  });
  // Each request needs a connection of its own.
  world.answer((_arrival, response) => response.setHeader('connection', 'close').end('{}'));
  const url = world.url('rebinding').replace('127.0.0.1', 'rebinding.test');
  const id = await world.create(sender(url, { filters: { events: [{ id: 'paid', type: 'events' }] } }));
  const ended = async (count: number) => {
    const history = await world.history(id);
    return history.length === count && history;
  };
  await world.capture([{ event: 'paid', properties: { id: 1 } }]);
  expect(await eventually(() => ended(1))).toMatchObject([{ status: 'succeeded' }]);
  await world.capture([{ event: 'paid', properties: { id: 2 } }]);
  const [, second] = await eventually(() => ended(2));
  expect(second).toMatchObject({ status: 'failed' });
  expect(JSON.stringify(second)).toContain('169.254.169.254');
  expect(asked).toEqual(['rebinding.test', 'rebinding.test']);
  expect(world.arrivals.map(({ body }) => JSON.parse(body).id)).toEqual([1]);
});
