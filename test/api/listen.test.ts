import http from 'node:http';
import net from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import Fastify from 'fastify';
import { listen } from '../../api/listen.ts';
import { reservePort } from '../support/ports.ts';

const HOST = '127.0.0.1';
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function start({ port = 0, more = 7 } = {}) {
  const app = Fastify();
  const held = Promise.withResolvers<string>();
  app.get('/', async () => 'here');
  app.get('/slow', () => held.promise);
  const where = { host: HOST, port: port || (await reservePort()) };
  const close = await listen(app, where, more);
  return { app, port: where.port, close, answerSlow: () => held.resolve('late') };
}

function get(port: number, path = '/', agent: http.Agent | false = false): Promise<string> {
  return new Promise((resolve, reject) => {
    http
      .get({ host: HOST, port, path, agent }, (response) => {
        let text = '';
        response.on('data', (piece) => {
          text += piece;
        });
        response.on('end', () => resolve(text));
      })
      .on('error', reject);
  });
}

test.each([0, 7])('many connections at once are answered, with %d further sockets', async (more) => {
  const { port, close, app } = await start({ more });
  closing.push(close);
  let accepted = 0;
  app.server.on('connection', () => {
    accepted += 1;
  });
  expect(await Promise.all(Array.from({ length: 300 }, () => get(port)))).toEqual(Array(300).fill('here'));
  expect(accepted).toBe(300);
});

test('several connections are accepted in one turn of the event loop', async () => {
  const { port, close, app } = await start();
  closing.push(close);
  const turns: number[] = [];
  let [turn, isOver] = [0, false];
  const count = () => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  app.server.on('connection', () => turns.push(turn));
  const sockets = Array.from({ length: 200 }, () => net.connect(port, HOST));
  closing.unshift(async () => sockets.map((socket) => socket.destroy()));
  // Nothing is accepted meanwhile, so all of them wait together.
  const until = performance.now() + 500;
  await new Promise(setImmediate);
  while (performance.now() < until);
  count();
  while (turns.length < sockets.length) await new Promise(setImmediate);
  isOver = true;
  const groups = [...Map.groupBy(turns, (one) => one).values()];
  const most = Math.max(...groups.map((group) => group.length));
  expect(most).toBeGreaterThan(1);
});

test.each([
  [
    'another program',
    () =>
      new Promise<number>((resolve) => {
        const server = net
          .createServer()
          .listen(0, HOST, () => resolve((server.address() as net.AddressInfo).port));
        closing.push(() => new Promise((done) => server.close(done)));
      }),
  ],
  [
    'another API',
    async () => {
      const { port, close } = await start();
      closing.push(close);
      return port;
    },
  ],
])('an address where %s listens is refused', async (_, taken) => {
  const port = await taken();
  await expect(start({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
});

test('closing answers what is under way, and ends connections that wait for nothing', async () => {
  const { port, close, answerSlow, app } = await start();
  const agent = new http.Agent({ keepAlive: true });
  await Promise.all(Array.from({ length: 30 }, () => get(port, '/', agent)));
  let isAsked = false;
  app.server.once('request', () => {
    isAsked = true;
  });
  const slow = Array.from({ length: 30 }, () => get(port, '/slow', agent));
  while (!isAsked) await new Promise(setImmediate);
  const closed = close();
  answerSlow();
  const answers = await Promise.allSettled(slow);
  expect(answers.some((one) => one.status === 'fulfilled' && one.value === 'late')).toBe(true);
  await closed;
  await expect(get(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});
