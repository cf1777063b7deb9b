import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { RawConfig } from '../../destinations/config.ts';
import type { Surroundings } from '../../destinations/destination.ts';
import { ServerMessages, WireError } from '../../destinations/postgres/wire.ts';
import { runTestStep } from '../../destinations/settings.ts';
import { createEgress } from '../../egress/egress.ts';
import { deliver, failureOf } from './harness.ts';
import { sampleEvents } from './sample.ts';

// Servers that speak the protocol of Postgres in order to harm the process that connects to them.

let surroundings: Surroundings;
const stops: (() => unknown)[] = [];
beforeAll(() => {
  surroundings = { egress: createEgress({ allow: '127.0.0.1' }), exportRoot: '/nowhere' };
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});
afterAll(() => surroundings.egress.close());

function message(type: string, body: Buffer, length = body.length + 4): Buffer {
  const header = Buffer.alloc(5);
  header.write(type, 'latin1');
  header.writeUInt32BE(length, 1);
  return Buffer.concat([header, body]);
}
const LET_IN = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]);
const ONE_COLUMN = message('T', Buffer.concat([Buffer.of(0, 1, 0x61, 0), Buffer.alloc(18)]));
const ROW = message('D', Buffer.concat([Buffer.of(0, 1, 0, 0, 3, 0xe8), Buffer.alloc(1000, 0x61)]));

/** Sends the same bytes for as long as somebody reads them. */
function flood(socket: net.Socket, piece: Buffer): void {
  const more = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on('drain', more);
  more();
}

/** A server that lets everybody in and answers the first statement like this. */
async function serve(greeting: Buffer, answer?: (socket: net.Socket) => void): Promise<RawConfig> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', (asked) => {
      const begin = () => {
        socket.write(greeting);
        socket.once('data', () => answer?.(socket));
      };
      // The request for TLS, and then the greeting of a client that goes without.
      if (asked.length === 8) socket.write('N', () => socket.once('data', begin));
      else begin();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { user: 'somebody', password: 'something', host: '127.0.0.1', port, database: 'theirs' };
}

const step = (config: RawConfig, number: number) =>
  runTestStep({ type: 'Postgres', config }, number, surroundings);
const said = 'the answer is not one of Postgres';

describe('a server that greets with', () => {
  test.each<[string, Buffer]>([
    ['an error of 2 GB', message('E', Buffer.alloc(0), 2 ** 31 - 16)],
    ['an unknown kind of login', message('R', Buffer.of(0, 0, 0, 99))],
    ['a message shorter than its length', message('R', Buffer.alloc(0), 0)],
  ])('%s', async (_what, greeting) => {
    const config = await serve(greeting);
    expect((await step(config, 1))?.result).toEqual({
      status: 'Failed',
      message: expect.stringContaining(said),
    });
    expect(
      await failureOf(deliver({ type: 'Postgres', config, surroundings, events: sampleEvents(1) })),
    ).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining(said),
    });
  });
});

test.each<[string, Buffer]>([
  ['a row of -1 columns', Buffer.concat([ONE_COLUMN, message('D', Buffer.of(0xff, 0xff))])],
  ['a description that ends early', message('T', Buffer.of(0, 9))],
])('a server that answers a statement with %s', async (_what, answer) => {
  const config = await serve(LET_IN, (socket) => socket.write(answer));
  expect((await step(config, 1))?.result).toEqual({
    status: 'Failed',
    message: expect.stringContaining(said),
  });
});

test('rows without an end are not collected', async () => {
  const config = await serve(LET_IN, (socket) => {
    socket.write(ONE_COLUMN);
    flood(socket, Buffer.concat(Array.from({ length: 64 }, () => ROW)));
  });
  expect((await step(config, 1))?.result).toEqual({
    status: 'Failed',
    message: expect.stringContaining(`${said}: more than 1048576 bytes for one statement`),
  });
});

describe('messages', () => {
  const cut = (bytes: Buffer, pieces = bytes.length) => {
    const messages = new ServerMessages();
    const taken: string[] = [];
    const take = (one: Buffer) => taken.push(one.toString('latin1'));
    const size = Math.ceil(bytes.length / pieces);
    for (let at = 0; at < bytes.length; at += size) messages.push(bytes.subarray(at, at + size), take);
    return taken;
  };
  const error = message('E', Buffer.from('SERROR\0C28P01\0\0'));
  const several = [
    message('R', Buffer.alloc(4)),
    error,
    message('N', Buffer.of(0)),
    message('Z', Buffer.from('I')),
  ];
  const expected = several.map((one) => one.toString('latin1'));

  test('arrive whole, however they are cut', () => {
    const bytes = Buffer.concat(several);
    for (let pieces = 1; pieces <= bytes.length; pieces += 1) expect(cut(bytes, pieces)).toEqual(expected);
  });

  // The client would look for the end of these for ever.
  test.each(['', 'S', 'SERROR', 'SERROR\0', 'SERROR\0C'])('errors and notices need an end: %j', (fields) => {
    for (const type of ['E', 'N'])
      expect(() => cut(message(type, Buffer.from(fields)), 1)).toThrow(WireError);
  });

  test('each statement has room of its own, and errors have more', () => {
    const rows = Buffer.concat(Array.from({ length: 1000 }, () => ROW));
    const done = message('Z', Buffer.from('T'));
    expect(cut(Buffer.concat([rows, done, rows, done]), 50)).toHaveLength(2002);
    expect(() => cut(Buffer.concat([rows, rows]), 50)).toThrow(WireError);
    const long = message(
      'E',
      Buffer.concat([Buffer.from('M'), Buffer.alloc(8 * 2 ** 20, 0x61), Buffer.of(0, 0)]),
    );
    expect(cut(long, 100)).toHaveLength(1);
  });
});
