import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { fairStarts, senderOf } from '../../api/fair-starts.ts';

const requestOf = (remoteAddress: string, forwarded?: string) =>
  ({
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    socket: { remoteAddress, destroyed: false },
  }) as unknown as IncomingMessage;
const response = {} as ServerResponse;

describe('requests that come at once', () => {
  /** Begins requests, a few in a turn, and answers who sent them, turn by turn. */
  async function turnsOf(senders: string[], gone: string[] = []): Promise<string[][]> {
    let turn: string[] = [];
    const begin = fairStarts(
      ({ socket }) => turn.push(socket.remoteAddress as string),
      ({ socket }) => socket.remoteAddress as string,
      3,
      0,
    );
    const requests = senders.map((sender) => requestOf(sender));
    for (const request of requests) begin(request, response);
    for (const { socket } of requests)
      if (gone.includes(socket.remoteAddress as string)) Object.assign(socket, { destroyed: true });
    const turns = [];
    for (; turn.length > 0; await nextTurn()) {
      turns.push(turn);
      turn = [];
    }
    return turns;
  }

  test('begin a few in each turn, in their order', async () => {
    expect(await turnsOf(['a', 'a'])).toEqual([['a', 'a']]);
    expect(await turnsOf(Array(7).fill('a'))).toEqual([['a', 'a', 'a'], ['a', 'a', 'a'], ['a']]);
  });

  test('one client does not wait behind the many of another', async () => {
    const turns = await turnsOf([...Array(300).fill('a'), 'b', 'b', 'b', 'c']);
    expect(turns.slice(0, 4)).toEqual([
      ['a', 'a', 'a'],
      ['a', 'b', 'c'],
      ['a', 'b', 'a'],
      ['b', 'a', 'a'],
    ]);
    expect(turns.flat()).toHaveLength(304);
  });

  test('those whose client has gone while they waited do not begin', async () => {
    const turns = await turnsOf(['a', 'a', 'a', 'b', 'a', 'b'], ['b']);
    expect(turns.flat()).toEqual(['a', 'a', 'a', 'a']);
  });

  test('later ones begin at once when nobody waits', async () => {
    const begun: string[] = [];
    const begin = fairStarts(
      ({ socket }) => begun.push(socket.remoteAddress as string),
      ({ socket }) => socket.remoteAddress as string,
      1,
      0,
    );
    for (const sender of ['a', 'b', 'c']) {
      begin(requestOf(sender), response);
      await nextTurn();
    }
    expect(begun).toEqual(['a', 'b', 'c']);
  });
});

test.each([
  ['an address', [], '10.0.0.1', undefined, '10.0.0.1'],
  ['a network of IPv6 addresses', [], '2001:db8::1', undefined, '2001:db8:0:0::/64'],
  [
    'what somebody who is no proxy says does not count',
    ['10.0.0.0/8'],
    '192.0.2.1',
    '198.51.100.7',
    '192.0.2.1',
  ],
  ['a proxy names its client', ['10.0.0.0/8'], '10.0.0.1', '198.51.100.7', '198.51.100.7'],
  [
    'the last one that is no proxy counts',
    ['10.0.0.0/8'],
    '10.0.0.1',
    '1.1.1.1, 198.51.100.7, 10.0.0.9',
    '198.51.100.7',
  ],
  ['a proxy that asks for itself', ['10.0.0.0/8'], '10.0.0.1', undefined, '10.0.0.1'],
])('the sender of a request: %s', (_, proxies, peer, forwarded, expected) => {
  expect(senderOf(proxies)(requestOf(peer, forwarded))).toBe(expected);
});
