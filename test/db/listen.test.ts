import net from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { createListener, type Listener, type ListenerOptions } from '../../db/listen.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';

const database = databaseForFile();
const open: Listener[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()));
});

function listen(options: Partial<ListenerOptions> = {}): Listener {
  const listener = createListener({ url: database.url, name: 'ears', ...options });
  open.push(listener);
  return listener;
}

function subscriber() {
  const heard: string[] = [];
  return { heard, told: (payload: string) => heard.push(payload), missed: () => heard.push('(missed)') };
}

const tell = (channel: string, payload: string) =>
  database.pool.query('select pg_notify($1, $2)', [channel, payload]);
const heardBy = (listener: Listener) => eventually(async () => listener.isListening());

/** A way to the database that can be made to swallow everything. */
async function tunnel() {
  const state = { dead: false };
  const { hostname, port } = new URL(database.url);
  const sockets = new Set<net.Socket>();
  const server = net.createServer((near) => {
    const far = net.connect(Number(port), hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes) => state.dead || to.write(bytes));
      from.on('close', () => to.destroy());
      from.on('error', () => to.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(database.url);
  url.host = `127.0.0.1:${(server.address() as net.AddressInfo).port}`;
  const close = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { state, url: url.href, close };
}

test('hears what is told on the channels that somebody listens to, each subscriber its own', async () => {
  const listener = listen();
  const [a, also, other] = [subscriber(), subscriber(), subscriber()];
  const stop = listener.subscribe('a', a);
  await heardBy(listener);
  listener.subscribe('a', also);
  listener.subscribe('Other "one"', other);
  await heardBy(listener);
  await tell('a', '1');
  await tell('nobody', '2');
  await tell('Other "one"', '3');
  await eventually(async () => other.heard.includes('3'));
  stop();
  await tell('a', '4');
  await eventually(async () => also.heard.includes('4'));
  expect(a.heard).toEqual(['(missed)', '1']);
  expect(also.heard).toEqual(['1', '4']);
  expect(other.heard).toEqual(['(missed)', '3']);
});

test('a transaction that is undone tells nothing', async () => {
  const listener = listen();
  const one = subscriber();
  listener.subscribe('undone', one);
  await heardBy(listener);
  await database.pool.query(`begin; select pg_notify('undone', 'no'); rollback`);
  await tell('undone', 'yes');
  await eventually(async () => one.heard.includes('yes'));
  expect(one.heard).toEqual(['(missed)', 'yes']);
});

test('a connection that breaks is made again, and subscribers are told that they may have missed something', async () => {
  const errors: string[] = [];
  const listener = listen({ onError: (error) => errors.push(error.message) });
  const one = subscriber();
  listener.subscribe('broken', one);
  await heardBy(listener);
  const { rowCount } = await database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'sluice-ears' and datname = current_database()`,
  );
  expect(rowCount).toBe(1);
  await eventually(async () => one.heard.filter((what) => what === '(missed)').length === 2);
  await tell('broken', 'again');
  await eventually(async () => one.heard.includes('again'));
  expect(errors).toHaveLength(1);
  expect(errors[0]).toMatch(/terminat/);
});

test('a connection that is dead without a word is noticed and replaced', async () => {
  const way = await tunnel();
  const listener = listen({ url: way.url, checkEvery: 50, patience: 300 });
  const one = subscriber();
  listener.subscribe('dead', one);
  await heardBy(listener);
  way.state.dead = true;
  await eventually(async () => !listener.isListening());
  way.state.dead = false;
  await heardBy(listener);
  await tell('dead', 'alive');
  await eventually(async () => one.heard.includes('alive'));
  await listener.close();
  way.close();
});

test('without a database nothing is heard, and closing does not wait for one', async () => {
  const errors: Error[] = [];
  const listener = listen({ url: 'postgres://127.0.0.1:1/none', onError: (error) => errors.push(error) });
  listener.subscribe('none', subscriber());
  await eventually(async () => errors.length > 0);
  expect(listener.isListening()).toBe(false);
  await listener.close();
});

test('closing in the middle of the connecting ends it, at any moment', async () => {
  for (let moment = 0; moment < 40; moment += 1) {
    const listener = listen();
    listener.subscribe('news', subscriber());
    for (let turn = 0; turn < moment; turn += 1) await new Promise(setImmediate);
    await listener.close();
    expect(listener.isListening()).toBe(false);
  }
});
