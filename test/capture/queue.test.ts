import { describe, expect, test } from '@jest/globals';
import { prepare } from '../../capture/ingest/event-row.ts';
import { type Queued, RequestQueue, Shares } from '../../capture/ingest/queue.ts';
import { inSlices } from '../../capture/ingest/store.ts';
import { turnsDuring } from '../support/loop.ts';
import { capturedEvent } from './support.ts';

interface Named extends Queued {
  name: string;
}

const request = (name: string, projectId: number, bytes = 10): Named => ({
  ...{ name, projectId, bytes, events: 1, submittedAt: 0 },
});
const MOST = { bytes: 40, events: 100 };

function queueOf(...requests: Named[]): RequestQueue<Named> {
  const queue = new RequestQueue<Named>();
  for (const one of requests) queue.push(one);
  return queue;
}
const names = (requests: Named[]) => requests.map((one) => one.name).join(' ');
/** Takes until nothing is left. */
function drain(queue: RequestQueue<Named>): string[] {
  const taken: string[] = [];
  while (queue.events > 0) taken.push(names(queue.take(MOST, true)));
  return taken;
}

describe('the queue', () => {
  test('lets projects take turns, whoever came first, and keeps the order of each', () => {
    const many = Array.from({ length: 7 }, (_, n) => request(`a${n}`, 1));
    const queue = queueOf(...many, request('b0', 2), request('b1', 2), request('c0', 3));
    expect(drain(queue)).toEqual(['a0 b0 c0 a1', 'b1 a2 a3 a4', 'a5 a6']);
    expect([queue.bytes, queue.events]).toEqual([0, 0]);
  });

  test('gives the first turn to whoever had the last one least lately', () => {
    const queue = queueOf(
      request('a0', 1, 40),
      request('a1', 1, 40),
      request('b0', 2, 40),
      request('b1', 2, 40),
    );
    expect(drain(queue)).toEqual(['a0', 'b0', 'a1', 'b1']);
  });

  test('fills a transaction with what fits, and does not let a large request wait for ever', () => {
    const queue = queueOf(request('a0', 1), request('large', 2, 500), request('a1', 1), request('c0', 3, 35));
    expect(drain(queue)).toEqual(['a0 a1', 'large', 'c0']);
  });

  test('leaves a large request, and what its project sent after it, until there is a connection for it', () => {
    const queue = queueOf(request('large', 2, 500), request('small', 2), request('a0', 1));
    expect(names(queue.take(MOST, false))).toBe('a0');
    expect(queue.take(MOST, false)).toEqual([]);
    expect(names(queue.take(MOST, true))).toBe('large');
    expect(names(queue.take(MOST, false))).toBe('small');
  });
});

describe('the room for what waits', () => {
  const most = { bytes: 100, events: 10 };
  const amount = (bytes: number, events = 1) => ({ bytes, events });

  test('is never used up by one project', () => {
    const shares = new Shares(most);
    shares.add(1, amount(40));
    expect(shares.hasRoom(1, amount(10))).toBe(true);
    expect(shares.hasRoom(1, amount(11))).toBe(false);
    expect(shares.hasRoom(1, amount(1, 5))).toBe(false);
    expect(shares.hasRoom(2, amount(50, 5))).toBe(true);
    shares.remove(1, amount(40));
    expect(shares.hasRoom(1, amount(11))).toBe(true);
    expect(shares.total).toEqual(amount(0, 0));
  });

  test('is bounded for all together, but one request of any size has room where nothing waits', () => {
    const shares = new Shares(most);
    expect(shares.hasRoom(1, amount(1_000, 1_000))).toBe(true);
    shares.add(1, amount(1_000, 1_000));
    expect(shares.hasRoom(2, amount(1))).toBe(false);
  });
});

test('the events of a large request are prepared in several turns, those of a usual one at once', async () => {
  const events = Array.from({ length: 2_000 }, () =>
    capturedEvent({ properties: { text: 'x'.repeat(1_000) } }),
  );
  expect(prepare(1, events.slice(0, 100))).not.toBeInstanceOf(Promise);
  let prepared = await prepare(1, []);
  const turns = await turnsDuring(async () => {
    prepared = await prepare(1, events);
  });
  expect(turns).toBeGreaterThanOrEqual(3);
  expect(
    prepared.events.map(({ head }) => head.bytes.subarray(head.from, head.to).includes('x'.repeat(1_000))),
  ).toEqual(events.map(() => true));
  for (const chunk of prepared.chunks) chunk.release();
});

test('a very large event is prepared in several turns, between events that stay in their order', async () => {
  const text = 'x'.repeat(2_000_000);
  const events = ['first', `${text}\u0000`, 'last'].map((one) =>
    capturedEvent({ properties: { text: one } }),
  );
  let prepared = await prepare(1, []);
  const turns = await turnsDuring(async () => {
    prepared = await prepare(1, events);
  });
  expect(turns).toBeGreaterThanOrEqual(2);
  const written = prepared.events.map(({ head }) => head.bytes.toString('utf8', head.from, head.to));
  expect(written.map((one) => one.match(/\{"text":"(?:first|x+\ufffd|last)"\}/)?.[0].length)).toEqual([
    '{"text":"first"}'.length,
    text.length + '{"text":"?"}'.length,
    '{"text":"last"}'.length,
  ]);
  for (const chunk of prepared.chunks) chunk.release();
});

test('the rows of very many events are written in several turns, and in their order', async () => {
  const { events } = await prepare(1, [capturedEvent()]);
  const many = Array(20_000).fill(events[0]);
  const written: number[] = [];
  let isEnded = false;
  const rows = {
    write: (_event: unknown, index: number) => written.push(index),
    end: () => {
      isEnded = true;
    },
  };
  const sink = { write: () => undefined, room: async () => undefined };
  const turns = await turnsDuring(async () => inSlices(many, sink, rows));
  expect(turns).toBeGreaterThanOrEqual(3);
  expect([written, isEnded]).toEqual([many.map((_, index) => index), true]);
});
