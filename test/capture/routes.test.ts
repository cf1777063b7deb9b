import { Writable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { RefusalLog } from '../../api/public/exchange.ts';
import { IngestUnavailableError } from '../../capture/ingest.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

let failure: Error | undefined;
const api = apiForFile(
  {},
  {
    ingest: {
      submit: async (request) => {
        if (failure) throw failure;
        return api.ingest.submit(request);
      },
    },
  },
);
let anna: Tenant;
let serial = 0;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
});

interface Stored {
  event: string;
  distinct_id: string;
  properties: Record<string, unknown>;
  historical: boolean;
}

async function stored(names: string[]): Promise<Stored[]> {
  const { rows } = await api.pool.query(
    'select event, distinct_id, properties, historical from events where event = any($1) order by timestamp, event',
    [names],
  );
  return rows;
}

function fresh(): string {
  serial += 1;
  return `event ${serial}`;
}

const send = (
  url: string,
  payload: unknown,
  headers: Record<string, string> = { 'content-type': 'application/json' },
) =>
  api.app.inject({
    method: 'POST',
    url,
    headers,
    payload: (typeof payload === 'string' || Buffer.isBuffer(payload)
      ? payload
      : JSON.stringify(payload)) as string,
    remoteAddress: '203.0.113.7',
  });

const one = (event: string) => ({ api_key: anna.projectToken, event, distinct_id: 'u1' });

describe('paths', () => {
  const paths = ['/i/v0/e', '/e', '/capture', '/track', '/engage', '/batch'];
  test.each(paths.flatMap((path) => [path, `${path}/`]))('%s stores before it answers', async (path) => {
    const name = fresh();
    const answer = await send(path, one(name));
    expect([answer.statusCode, answer.body]).toEqual([200, '{"status":"Ok"}']);
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
    expect(await stored([name])).toEqual([
      { event: name, distinct_id: 'u1', properties: { $ip: '203.0.113.7' }, historical: false },
    ]);
  });

  test('GET with data, as image pixels use it', async () => {
    const name = fresh();
    const data = Buffer.from(JSON.stringify(one(name))).toString('base64');
    const answer = await api.app.inject({ url: `/e/?data=${encodeURIComponent(data)}&ip=1&_=${Date.now()}` });
    expect(answer.statusCode).toBe(200);
    expect(await stored([name])).toHaveLength(1);
  });

  test('a beacon gets an answer without a body', async () => {
    const name = fresh();
    const answer = await send('/e/?beacon=1', one(name), { 'content-type': 'text/plain' });
    expect([answer.statusCode, answer.body]).toEqual([204, '']);
    expect(await stored([name])).toHaveLength(1);
  });

  test.each([undefined, 'text/plain', 'application/json', 'application/octet-stream', 'garbage', ''])(
    'the content type %j does not matter',
    async (type) => {
      const name = fresh();
      const answer = await send(
        '/e/',
        gzipSync(JSON.stringify([one(name)])),
        type === undefined ? {} : { 'content-type': type },
      );
      expect(answer.statusCode).toBe(200);
      expect(await stored([name])).toHaveLength(1);
    },
  );

  test('session recordings are refused politely', async () => {
    const answer = await send('/s/', one('recording'));
    expect([answer.statusCode, answer.json()]).toEqual([
      200,
      { status: 'Ok', quota_limited: ['recordings'] },
    ]);
    expect(await stored(['recording'])).toEqual([]);
  });

  test('v1 answers for each event', async () => {
    const [good, bad] = ['0197a3c0-0000-7000-8000-0000000000a1', '0197a3c0-0000-7000-8000-0000000000a2'];
    const name = fresh();
    const batch = [
      {
        uuid: good,
        event: name,
        distinct_id: 'u',
        options: { process_person_profile: false },
        properties: {},
      },
      { uuid: bad, event: name, properties: {} },
    ];
    const answer = await send(
      '/i/v1/analytics/events',
      { created_at: new Date().toISOString(), batch },
      {
        'content-type': 'application/json',
        authorization: `Bearer ${anna.projectToken}`,
        'posthog-sdk-info': 'posthog-node/5.70.0',
      },
    );
    expect(answer.json()).toEqual({
      results: { [good]: { result: 'ok' }, [bad]: { result: 'drop', details: 'missing_distinct_id' } },
    });
    expect(await stored([name])).toHaveLength(1);
  });

  test.each(['Bearer', 'bearer', 'BEARER'])('v1 reads its headers, the scheme as %s', async (scheme) => {
    const name = fresh();
    const hours = (count: number) => new Date(Date.now() + count * 3_600_000).toISOString();
    const answer = await send(
      '/i/v1/analytics/events',
      // The client's clock is ten hours ahead, and it sends the batch again, nine hours after the first attempt.
      { created_at: hours(1), batch: [{ event: name, distinct_id: 'u', timestamp: hours(0) }] },
      {
        authorization: `${scheme} ${anna.projectToken}`,
        'posthog-sdk-info': 'posthog-rs/0.30.0',
        'posthog-request-timestamp': hours(10),
      },
    );
    expect(answer.statusCode).toBe(200);
    const [event] = await stored([name]);
    expect(event?.properties).toMatchObject({ $lib: 'posthog-rs', $lib_version: '0.30.0' });
    const { rows } = await api.pool.query(
      'select round(extract(epoch from timestamp - now()) / 3600)::int as hours from events where event = $1',
      [name],
    );
    expect(rows).toEqual([{ hours: -10 }]);
  });

  test('v1 answers by the uuids as they were sent', async () => {
    const name = fresh();
    const sent = ['0197A3C0-0000-7000-8000-0000000000A3', 'order-17', ''];
    const batch = sent.map((uuid) => ({ uuid, event: name, distinct_id: 'u' }));
    const answer = await send(
      '/i/v1/analytics/events',
      { batch },
      { authorization: `Bearer ${anna.projectToken}` },
    );
    const ok = { result: 'ok' };
    const made = expect.stringMatching(/^[\da-f]{8}-[\da-f]{4}-7/);
    expect(Object.entries(answer.json().results)).toEqual([
      [sent[0], ok],
      ['order-17', ok],
      [made, ok],
    ]);
    expect(await stored([name])).toHaveLength(3);
  });
});

describe('answers', () => {
  test('the same event twice is stored once, and both times answered with 200', async () => {
    const name = fresh();
    const event = { ...one(name), uuid: '0197a3c0-0000-7000-8000-0000000000b1' };
    for (const body of [event, event, { api_key: anna.projectToken, batch: [event, event] }]) {
      expect((await send('/batch/', body)).statusCode).toBe(200);
    }
    expect(await stored([name])).toHaveLength(1);
  });

  test.each([
    [
      'an unknown key',
      { api_key: 'phc_nobody', event: 'e', distinct_id: 'u' },
      'API key is not valid: unknown',
    ],
    [
      'a personal key',
      { api_key: 'phx_x', event: 'e', distinct_id: 'u' },
      'API key is not valid: personal_api_key',
    ],
    ['no key', { event: 'e', distinct_id: 'u' }, 'event submitted without an api_key'],
    [
      'a key that is a list',
      { api_key: ['x'], event: 'e', distinct_id: 'u' },
      'API key is not valid: not_a_string',
    ],
    ['an unknown key and no event', { api_key: 'phc_nobody', batch: [] }, 'API key is not valid: unknown'],
    [
      'a key of the wrong kind and no event',
      { api_key: 'phx_x', batch: [] },
      'API key is not valid: personal_api_key',
    ],
  ])('401 for %s', async (_name, body, detail) => {
    const answer = await send('/i/v0/e/', body);
    expect(answer.statusCode).toBe(401);
    expect(answer.json()).toMatchObject({ type: 'authentication_error', detail });
  });

  test.each([
    ['nothing', '', 'request missing data payload'],
    ['half of a JSON', '{"a":', 'not valid JSON'],
    ['an empty batch without a key', '{"batch":[]}', 'request holds no event'],
    ['broken gzip', Buffer.from([0x1f, 0x8b, 0x08, 0, 0]), 'invalid GZIP data'],
  ])('400 for %s', async (_name, body, detail) => {
    const answer = await send('/batch/', body);
    expect(answer.statusCode).toBe(400);
    expect(answer.json().detail).toContain(detail);
  });

  test('400 for an empty batch of a known key, wherever the key stands', async () => {
    for (const [url, body] of [
      ['/batch/', { api_key: anna.projectToken, batch: [] }],
      [`/e/?api_key=${anna.projectToken}`, []],
    ] as [string, unknown][]) {
      const answer = await send(url, body);
      expect([answer.statusCode, answer.json().detail]).toEqual([400, 'request holds no event']);
    }
  });

  test('405 for other methods, 404 for other paths', async () => {
    expect((await api.app.inject({ method: 'PUT', url: '/e/' })).statusCode).toBe(405);
    expect((await api.app.inject({ method: 'POST', url: '/e/x' })).statusCode).toBe(404);
  });

  test('503 with Retry-After when the ingest cannot take it', async () => {
    failure = new IngestUnavailableError('Too many events wait.', 7);
    try {
      const answer = await send('/e/', one(fresh()));
      expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '7']);
      expect(answer.json().detail).toBe('Too many events wait.');
    } finally {
      failure = undefined;
    }
    expect((await send('/e/', one(fresh()))).statusCode).toBe(200);
  });

  test('a migration that breaks the rules is refused whole, with the indexes', async () => {
    const [good, bad] = [fresh(), fresh()];
    const timestamp = '2020-01-01T00:00:00Z';
    const batch = [
      { event: good, distinct_id: 'u', timestamp },
      { event: bad, distinct_id: 'u' },
    ];
    const answer = await send('/batch/', { api_key: anna.projectToken, historical_migration: true, batch });
    expect(answer.statusCode).toBe(400);
    expect(answer.json()).toEqual({
      type: 'validation_error',
      code: 'historical_migration',
      detail:
        'historical_migration: 1 of 2 events breaks its rules, nothing was stored. Each event needs a distinct_id ' +
        'and an ISO 8601 timestamp at least 48 hours old. batch[1]: timestamp is missing',
      attr: 'batch',
      errors: [{ index: 1, reason: 'timestamp is missing' }],
    });
    expect(await stored([good, bad])).toEqual([]);
    const right = await send('/batch/', {
      api_key: anna.projectToken,
      historical_migration: true,
      batch: batch.slice(0, 1),
    });
    expect(right.statusCode).toBe(200);
    expect(await stored([good])).toMatchObject([{ event: good, historical: true }]);
  });

  test.each([
    ['phc_unknown', 'API key is not valid: unknown'],
    [undefined, 'event submitted without an api_key'],
  ])('whoever sends a migration with the key %j is told that first', async (api_key, detail) => {
    const batch = [{ event: fresh(), distinct_id: 'u' }];
    const answer = await send('/batch/', { api_key, historical_migration: true, batch });
    expect([answer.statusCode, answer.json().detail]).toEqual([401, detail]);
  });

  test.each([
    ['203.0.113.8:51234', '203.0.113.8'],
    ['[2001:db8::8]:51234', '2001:db8::8'],
    ['[2001:db8::8]', '2001:db8::8'],
    ['2001:db8::8', '2001:db8::8'],
    ['::ffff:203.0.113.8', '203.0.113.8'],
    ['[::ffff:203.0.113.8]:51234', '203.0.113.8'],
  ])('a request of %s comes from %s', async (remoteAddress, address) => {
    const name = fresh();
    const payload = one(name);
    await api.app.inject({ method: 'POST', url: '/e/', payload, remoteAddress });
    expect(await stored([name])).toMatchObject([{ properties: { $ip: address } }]);
  });

  test('no addresses are kept where the project does not want them', async () => {
    const bob = await api.createTenant('Bob');
    await api.pool.query('update projects set anonymize_ips = true where id = $1', [bob.projectId]);
    const name = fresh();
    await send('/e/', { ...one(name), api_key: bob.projectToken, properties: { $ip: '1.2.3.4', a: 1 } });
    expect(await stored([name])).toMatchObject([{ properties: { a: 1 } }]);
    expect((await stored([name]))[0]?.properties).not.toHaveProperty('$ip');
  });
});

describe('around an answer', () => {
  const origin = 'https://shop.example.com';

  test('pages of any site may read it, errors too; others are told nothing about that', async () => {
    const json = { 'content-type': 'application/json' };
    for (const [body, status] of [
      [one(fresh()), 200],
      [{ event: 'e' }, 401],
    ] as [unknown, number][]) {
      const answer = await send('/e/', body, { ...json, origin });
      expect(answer.statusCode).toBe(status);
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': origin,
        'access-control-allow-credentials': 'true',
        'access-control-expose-headers': 'x-request-id, retry-after, etag',
        vary: 'Origin',
        'content-length': String(answer.body.length),
      });
      const plain = await send('/e/', body);
      expect(plain.headers).toMatchObject({ vary: 'Origin', 'x-request-id': expect.any(String) });
      expect(plain.headers).not.toHaveProperty('access-control-allow-origin');
    }
    expect((await send('/e/', { event: 'e' })).headers['x-content-type-options']).toBe('nosniff');
  });

  test('carries the request id that was given, or one of ours', async () => {
    const given = await send('/e/', one(fresh()), { 'x-request-id': 'trace-1' });
    expect(given.headers['x-request-id']).toBe('trace-1');
    expect((await send('/e/', '')).headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('requests, events and durations are counted by route and status', async () => {
    const read = async () => {
      const text = await api.registry.metrics();
      const number = (start: string, ...labels: string[]) =>
        Number(
          text
            .split('\n')
            .find((line) => line.startsWith(start) && labels.every((label) => line.includes(label)))
            ?.split(' ')
            .at(-1) ?? 0,
        );
      const route = 'route="/track/"';
      return {
        stored: number('sluice_http_request_seconds_count', route, 'method="POST"', 'status="200"'),
        fastOrNot: number('sluice_http_request_seconds_bucket', route, 'status="200"', 'le="+Inf"'),
        refused: number('sluice_http_request_seconds_count', route, 'status="401"'),
        ok: number('sluice_capture_requests_total', 'status="200"'),
        events: number('sluice_capture_events_total'),
        bytes: number('sluice_capture_bytes_total', 'form="received"'),
      };
    };
    const before = await read();
    const body = { api_key: anna.projectToken, batch: [one(fresh()), one(fresh())] };
    await send('/track/', body);
    await send('/track/', { event: 'e' });
    const after = await read();
    expect(after).toEqual({
      stored: before.stored + 1,
      fastOrNot: before.stored + 1,
      refused: before.refused + 1,
      ok: before.ok + 1,
      events: before.events + 2,
      bytes: before.bytes + JSON.stringify(body).length + JSON.stringify({ event: 'e' }).length,
    });
  });

  test('a fault of ours is a plain 500, and the log names the request and what broke', async () => {
    const lines: string[] = [];
    const stream = new Writable({
      write(chunk, _encoding, done) {
        lines.push(String(chunk));
        done();
      },
    });
    const app = await api.rebuild({
      ingest: { submit: () => Promise.reject(new Error('something broke')) },
      logger: createLogger({ name: 'test', level: 'info' }, stream),
    });
    const answer = await app.inject({
      method: 'POST',
      url: '/e/',
      headers: { 'x-request-id': 'r1' },
      payload: one('never'),
    });
    expect([answer.statusCode, answer.json().detail]).toEqual([500, 'A server error occurred.']);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'error', reqId: 'r1', url: '/e/', msg: 'request failed', err: { message: 'something broke' } },
    ]);
    await app.close();
  });
});

test('requests that are sent away for now are one line a second, with the number of the others', () => {
  const lines: unknown[] = [];
  const logger = (level: string) => (about: { untold?: number }, message: string) =>
    lines.push([level, message, about.untold]);
  const request = { id: 'r1', log: { error: logger('error'), warn: logger('warn') } } as never;
  let now = 5_000;
  const log = new RefusalLog(() => now);
  const away = new IngestUnavailableError('Too many events wait.', 1);
  for (let index = 0; index < 1_000; index += 1) log.tell(request, away, 503, '/e/');
  log.tell(request, new Error('something broke'), 500, '/e/');
  now += 1_000;
  log.tell(request, away, 503, '/e/');
  expect(lines).toEqual([
    ['warn', 'requests are sent away for now', 0],
    ['error', 'request failed', undefined],
    ['warn', 'requests are sent away for now', 999],
  ]);
});

describe('ingestion warnings', () => {
  test('say what was skipped and changed, and belong to their project', async () => {
    const eve = await api.createTenant('Eve');
    const name = fresh();
    const batch = [
      { distinct_id: 'u' },
      { event: name },
      { event: name, distinct_id: '' },
      { event: name, distinct_id: 'u', uuid: 'x' },
    ];
    for (let round = 0; round < 2; round += 1) {
      expect((await send('/batch/', { api_key: eve.projectToken, batch })).statusCode).toBe(200);
    }
    expect(await stored([name])).toHaveLength(2);
    const url = (tenant: Tenant) => `/api/projects/${tenant.projectId}/ingestion_warnings/?limit=2`;
    const { count, next, results } = (await api.request(eve, 'GET', url(eve))).json();
    expect(count).toBe(3);
    expect(next).toContain('offset=2');
    const rest = (await api.request(eve, 'GET', `${url(eve)}&offset=2`)).json();
    const all = [...results, ...rest.results];
    expect(all.map((one) => [one.reason, one.effect, one.count]).sort()).toEqual([
      ['invalid_uuid_replaced', 'changed', 2],
      ['missing_distinct_id', 'skipped', 4],
      ['missing_event_name', 'skipped', 2],
    ]);
    expect(all.find((one) => one.reason === 'missing_distinct_id')).toEqual({
      reason: 'missing_distinct_id',
      effect: 'skipped',
      day: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      count: 4,
      first_seen_at: expect.stringMatching(/Z$/),
      last_seen_at: expect.stringMatching(/Z$/),
      sample: { index: 1, event: name },
    });
    expect((await api.request(anna, 'GET', url(eve))).statusCode).toBe(404);
    const poor = await api.createTenant('Poor', { scopes: ['query:read'] });
    expect((await api.request(poor, 'GET', url(poor))).statusCode).toBe(403);
  });
});
