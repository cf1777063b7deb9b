import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { runtimeForFile, sender } from '../functions/runtime/world.ts';
import { eventually } from '../support/eventually.ts';
import { reservePort } from '../support/ports.ts';

// Targets that do what no target should.
const world = runtimeForFile();
const SECRET = 'a very secret key of the target';
const GIGABYTE = 1024 ** 3;
let hostile: Server;
let url: string;
let sent = 0;
let dripped = 0;

const head = (status: string, ...lines: string[]) => `HTTP/1.1 ${[status, ...lines].join('\r\n')}\r\n\r\n`;
const KINDS: Record<string, (socket: import('node:net').Socket, request: string) => void> = {
  gigabyte(socket) {
    socket.write(head('200 OK', `content-length: ${GIGABYTE}`));
    const piece = Buffer.alloc(64 * 1024, 'x');
    const more = () => {
      while (sent < GIGABYTE && !socket.destroyed) {
        sent += piece.length;
        if (!socket.write(piece)) return;
      }
    };
    socket.on('drain', more);
    more();
  },
  drip(socket) {
    socket.write(head('200 OK', 'content-length: 1000000'));
    const timer = setInterval(() => {
      dripped += 1;
      socket.write('x');
    }, 100);
    socket.on('close', () => clearInterval(timer));
  },
  reset: (socket) => void socket.resetAndDestroy(),
  redirect: (socket) =>
    void socket.end(
      head('307 Temporary Redirect', 'location: http://169.254.169.254/latest/', 'content-length: 0'),
    ),
  echo: (socket, request) => {
    const body = JSON.stringify({
      you_said: request,
      also: SECRET,
      base64: Buffer.from(SECRET).toString('base64'),
    });
    socket.end(
      head(
        '400 Bad Request',
        'content-type: application/json',
        `content-length: ${Buffer.byteLength(body)}`,
      ) + body,
    );
  },
};

beforeAll(async () => {
  const port = await reservePort();
  url = `http://127.0.0.1:${port}`;
  hostile = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (bytes) => {
      const request = bytes.toString();
      KINDS[/^POST \/(\w+)/.exec(request)?.[1] ?? '']?.(socket, request);
    });
  });
  await new Promise<void>((resolve) => hostile.listen(port, '127.0.0.1', resolve));
});
afterAll(() => void hostile?.close());

/** A function that sends to the target, and prints what it got. */
const to = (kind: string, more: object = {}) => ({
  hog: `let res := fetch('${url}/${kind}', {'headers': {'x-key': inputs.key}, 'body': {'key': inputs.key}});
    print('got', res.status, res.body)`,
  filters: { events: [{ id: kind, type: 'events' }] },
  inputs_schema: [{ key: 'key', type: 'string', secret: true }],
  inputs: { key: { value: SECRET } },
  // It is repeated once, and not for a day.
  delivery: { retry: { max_attempts: 2 } },
  ...more,
});

test('each of them ends its own invocation, and none of them another one', async () => {
  const kinds = Object.keys(KINDS);
  const ids = new Map<string, string>();
  for (const kind of kinds) ids.set(kind, await world.create(to(kind)));
  const healthy = await world.create(
    sender(world.url('healthy'), { filters: { events: [{ id: 'fine', type: 'events' }] } }),
  );
  await world.capture([
    ...kinds.map((event) => ({ event })),
    ...Array.from({ length: 50 }, () => ({ event: 'fine' })),
  ]);
  await eventually(async () => world.arrivals.length === 50);
  await world.idle();
  expect(await world.history(healthy)).toHaveLength(50);
  const outcomes: Record<string, unknown> = {};
  for (const [kind, id] of ids) {
    const [one] = await world.history(id);
    const attempts = one?.attempts as { status: number | null; error: string | null }[];
    outcomes[kind] = { status: one?.status, attempts: attempts.map(({ status }) => status) };
  }
  expect(outcomes).toEqual({
    // The beginning of a long answer is enough to know its status; the rest is not read.
    gigabyte: { status: 'succeeded', attempts: [200] },
    drip: { status: 'failed', attempts: [null, null] },
    reset: { status: 'failed', attempts: [null, null] },
    redirect: { status: 'succeeded', attempts: [307] },
    echo: { status: 'failed', attempts: [400] },
  });
  expect(sent).toBeLessThan(GIGABYTE / 8);
  expect(dripped).toBeGreaterThan(0);
  // What the target echoed is hidden, in history, log and answers of the API, also in other spellings.
  const [{ attempts }] = (await world.history(ids.get('echo') as string)) as [{ attempts: unknown }];
  const shown = JSON.stringify([attempts, await world.logs(ids.get('echo') as string)]);
  expect(shown).toContain('you_said');
  expect(shown).not.toContain(SECRET);
  const stored = await world.api.pool.query('select attempts::text, error from function_invocations');
  expect(JSON.stringify(stored.rows)).not.toContain(SECRET);
});

test('a function that captures the event that triggers it ends after ten rounds, and others go on', async () => {
  const id = await world.create({
    hog: "postHogCapture({'event': 'circle', 'distinct_id': event.distinct_id, 'properties': event.properties})",
    filters: { events: [{ id: 'circle', type: 'events' }] },
  });
  await world.capture(Array.from({ length: 5 }, () => ({ event: 'circle' })));
  await world.idle();
  const history = await world.history(id);
  expect(history).toHaveLength(5 * 11);
  // The program goes on without the event, and its log says so.
  expect(history.filter((one) => one.status === 'succeeded')).toHaveLength(5 * 11);
  const logs = await world.logs(id);
  expect(logs.filter((one) => one.message.includes('the event was not captured'))).toHaveLength(5);
});
