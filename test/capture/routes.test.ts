import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { IngestUnavailableError } from '../../capture/ingest.ts';
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
  ])('401 for %s', async (_name, body, detail) => {
    const answer = await send('/i/v0/e/', body);
    expect(answer.statusCode).toBe(401);
    expect(answer.json()).toMatchObject({ type: 'authentication_error', detail });
  });

  test.each([
    ['nothing', '', 'request missing data payload'],
    ['half of a JSON', '{"a":', 'not valid JSON'],
    ['an empty batch', '{"api_key":"x","batch":[]}', 'request holds no event'],
    ['broken gzip', Buffer.from([0x1f, 0x8b, 0x08, 0, 0]), 'invalid GZIP data'],
  ])('400 for %s', async (_name, body, detail) => {
    const answer = await send('/batch/', body);
    expect(answer.statusCode).toBe(400);
    expect(answer.json().detail).toContain(detail);
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

  test('no addresses are kept where the project does not want them', async () => {
    const bob = await api.createTenant('Bob');
    await api.pool.query('update projects set anonymize_ips = true where id = $1', [bob.projectId]);
    const name = fresh();
    await send('/e/', { ...one(name), api_key: bob.projectToken, properties: { $ip: '1.2.3.4', a: 1 } });
    expect(await stored([name])).toMatchObject([{ properties: { a: 1 } }]);
    expect((await stored([name]))[0]?.properties).not.toHaveProperty('$ip');
  });
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
