import { once } from 'node:events';
import net from 'node:net';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

const api = apiForFile();
let anna: Tenant;
let url: string;
beforeAll(async () => {
  anna = await api.createTenant('Anna');
  url = await api.app.listen({ host: '127.0.0.1', port: 0 });
});

/** Sends bytes as they are and reads until the server closes. */
function raw(...parts: (string | Buffer)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.once('close', () => resolve(answer));
    socket.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' || error.code === 'EPIPE' ? undefined : reject(error),
    );
    for (const part of parts) socket.write(part);
  });
}
const bodyOf = (answer: string) => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4));
const authorization = () => `Authorization: Bearer ${anna.key}`;

describe('over a real connection', () => {
  test('a name of 10 MB is 413, told to a client that is still sending', async () => {
    const answer = await fetch(`${url}/api/organizations/`, {
      method: 'POST',
      headers: { authorization: `Bearer ${anna.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'x'.repeat(10 * 1024 * 1024) }),
    });
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([
      413,
      'request_too_large',
    ]);
    expect((await fetch(`${url}/_livez`)).status).toBe(200);
  });

  test('so is one that comes in pieces and does not say how long it is', async () => {
    const piece = `20000\r\n${'x'.repeat(0x20000)}\r\n`;
    const answer = await raw(
      `POST /api/organizations/ HTTP/1.1\r\nHost: x\r\n${authorization()}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`,
      ...Array(9).fill(piece),
      '0\r\n\r\n',
    );
    expect(answer.split('\r\n')[0]).toBe('HTTP/1.1 413 Payload Too Large');
    expect(bodyOf(answer).code).toBe('request_too_large');
  });

  test('requests that nobody waits for are not collected', async () => {
    const one = 'GET /_livez HTTP/1.1\r\nHost: x\r\n\r\n';
    const last = 'GET /_livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
    const statuses = async (requests: string) =>
      (await raw(requests)).match(/HTTP\/1.1 200 OK/g)?.length ?? 0;
    expect(await statuses(one.repeat(99) + last)).toBe(100);
    // The connection is closed, long before all of them have been answered.
    expect(await statuses(one.repeat(100_000))).toBeLessThan(50_000);
    expect((await fetch(`${url}/_livez`)).status).toBe(200);
  });

  test.each([
    ['no HTTP at all', 'GARBAGE\r\n\r\n', '400 Bad Request'],
    [
      'two lengths',
      'POST /api/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      '400 Bad Request',
    ],
    [
      'a length and pieces',
      'POST /api/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      '400 Bad Request',
    ],
    [
      'a header with a line break in it',
      'GET /_livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\rb\r\n\r\n',
      '400 Bad Request',
    ],
    [
      'a header with a NUL in it',
      'GET /_livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\0b\r\n\r\n',
      '400 Bad Request',
    ],
    [
      'headers without end',
      `GET /_livez HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      '431 Request Header Fields Too Large',
    ],
  ])('%s is refused in our form', async (_name, text, status) => {
    const answer = await raw(text);
    expect(answer.split('\r\n')[0]).toBe(`HTTP/1.1 ${status}`);
    expect(bodyOf(answer)).toEqual({
      type: 'invalid_request',
      code: 'parse_error',
      detail: `${status.slice(4)}.`,
      attr: null,
    });
  });

  test('line breaks in a path or a query split no header', async () => {
    for (const path of ['/api/%0d%0aSet-Cookie:%20x=1', '/api/projects/?limit=1&x=%0d%0aSet-Cookie:%20x=1']) {
      const answer = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${anna.key}` } });
      expect(answer.headers.get('set-cookie')).toBeNull();
      expect([400, 404]).toContain(answer.status);
      expect(await answer.text()).not.toContain('\r');
    }
  });

  test('the body of a path that does not exist is not waited for', async () => {
    const answer = await raw(
      `PUT /api/organizations/ HTTP/1.1\r\nHost: x\r\n${authorization()}\r\nContent-Type: text/csv\r\nContent-Length: 3\r\nConnection: close\r\n\r\na,b`,
    );
    expect(answer.split('\r\n')[0]).toBe('HTTP/1.1 405 Method Not Allowed');
    expect(bodyOf(answer).code).toBe('method_not_allowed');
  });

  test('a request line with a whole address is a request for its path', async () => {
    const answer = await raw(
      `GET http://evil.example/api/environments/?limit=1 HTTP/1.1\r\nHost: evil.example\r\n${authorization()}\r\nConnection: close\r\n\r\n`,
    );
    expect(answer.split('\r\n')[0]).toBe('HTTP/1.1 200 OK');
    expect(bodyOf(answer).count).toBe(1);
  });

  test('a client that goes away does no harm', async () => {
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
    await new Promise((resolve) => socket.once('connect', resolve));
    const half = `POST /api/organizations/ HTTP/1.1\r\nHost: x\r\n${authorization()}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"name`;
    await new Promise((resolve) => socket.write(half, resolve));
    socket.destroy();
    const answer = await api.request(anna, 'GET', '/api/organizations/');
    expect([answer.statusCode, answer.json().count]).toEqual([200, 1]);
    // Whose key it was is still being looked up; nobody waits for that any more but the pool.
    await eventually(async () => api.pool.idleCount === api.pool.totalCount);
  });
});

test('a connection on which nothing comes does not keep the API open', async () => {
  const app = await api.rebuild({});
  const port = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port);
  const silent = net.connect(port, '127.0.0.1');
  await once(app.server, 'connection');
  const [gone] = [once(silent, 'close'), await app.close()];
  silent.resume();
  await gone;
});

describe('health', () => {
  test('tells of Postgres, migrations and Temporal', async () => {
    const ready = await api.request(null, 'GET', '/_readyz/');
    expect([ready.statusCode, ready.json()]).toEqual([
      200,
      {
        status: 'ok',
        checks: {
          postgres: 'ok',
          migrations: 'ok',
          temporal: expect.stringMatching(/^(ok|unavailable)$/),
          draining: false,
        },
      },
    ]);
    for (const path of ['/_livez', '/_health']) {
      expect((await api.request(null, 'GET', path)).json()).toEqual({ status: 'ok' });
    }
  });

  test('a database that lacks a migration is not ready', async () => {
    await api.pool.query('alter table migrations rename to hidden');
    const missing = await api.request(null, 'GET', '/_readyz');
    await api.pool.query('alter table hidden rename to migrations');
    expect([missing.statusCode, missing.headers['retry-after'], missing.json().checks]).toMatchObject([
      503,
      '2',
      { postgres: 'ok', migrations: 'missing' },
    ]);
  });

  test('until the database is prepared, only health is answered', async () => {
    const app = await api.rebuild({ isPrepared: () => false });
    const answer = await app.inject({ url: '/api/organizations/' });
    expect([answer.statusCode, answer.headers['retry-after'], answer.json()]).toEqual([
      503,
      '2',
      {
        type: 'server_error',
        code: 'unavailable',
        detail: 'The database is being brought up to date. Try again.',
        attr: null,
      },
    ]);
    expect((await app.inject({ url: '/_livez' })).statusCode).toBe(200);
    const ready = await app.inject({ url: '/_readyz' });
    expect([ready.statusCode, ready.json().checks.migrations]).toEqual([503, 'ok']);
    await app.close();
  });
});
