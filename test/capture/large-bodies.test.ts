import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import LZString from 'lz-string';
import type { App } from '../../api/dependencies.ts';
import { DecodeError, ONE_GO } from '../../capture/decode/limits.ts';
import { createLargeBodies } from '../../capture/large/bodies.ts';
import { groupUpdateOf, membershipsOf } from '../../capture/persons/groups.ts';
import { mergeOf } from '../../capture/persons/identity.ts';
import { personPropertiesOf } from '../../capture/persons/properties.ts';
import { effectOf } from '../../capture/persons/update.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { capturedEvent } from './support.ts';

const api = apiForFile();
/** The same API, but its main thread reads large bodies too. */
let plain: App;
beforeAll(async () => {
  plain = await api.rebuild({ largeBodies: undefined });
});
afterAll(() => plain?.close());

const PADDING = 'ä€𝄞 "\\ padding '.repeat(40);
const uuid = (index: number) => `00000000-0000-7000-8000-${index.toString(16).padStart(12, '0')}`;

/** An event of each kind that persons, groups and columns depend on. */
function event(index: number): Record<string, unknown> {
  const who = `user-${index % 40}`;
  const kinds: Record<string, unknown>[] = [
    {
      event: 'page viewed',
      properties: { $current_url: `https://x.y/${index}`, $browser: 'Ä', nested: [1, { a: null }] },
    },
    { event: 'of nobody', properties: { $process_person_profile: false, $session_id: `s${index}` } },
    {
      event: 'grouped',
      properties: { $process_person_profile: false, $groups: { company: `c${index % 7}` } },
    },
    {
      event: '$identify',
      properties: { $anon_distinct_id: `anon-${index}`, $set: { n: index }, $set_once: { first: index } },
    },
    {
      event: '$groupidentify',
      properties: { $group_type: 'company', $group_key: `c${index % 7}`, $group_set: { size: index } },
    },
    { event: '$create_alias', distinct_id: who, properties: { alias: `also-${index}` } },
    { event: 'unset', properties: { $unset: ['n'], $is_server: true, $os: 'Linux' } },
    { event: 'with elements', properties: { $elements_chain: 'a:text="x"', $window_id: 'w', $lib: 'web' } },
    { event: 'no uuid that is one', uuid: 'nonsense', properties: {} },
    { event: '', properties: {} },
    {
      event: 'exact',
      properties: { big: '9007199254740993', text: '\u0000 \ud800' },
      $set: { lifted: true },
    },
  ];
  const kind = kinds[index % kinds.length] as Record<string, unknown>;
  return {
    distinct_id: who,
    uuid: uuid(index),
    timestamp: new Date(Date.UTC(2026, 0, 1) + index * 1000).toISOString(),
    ...kind,
    properties: { ...(kind.properties as object), padding: PADDING, index },
  };
}

const events = (count = 900) => Array.from({ length: count }, (_, index) => event(index));

interface Sent {
  url?: string;
  headers?: Record<string, string>;
  body: Buffer | string;
}

const JSON_TYPE = { 'content-type': 'application/json' };
const batch = (token: string, more: object = {}) =>
  JSON.stringify({ api_key: token, batch: events(), ...more });
const encoded = (encoding: string, body: Buffer): Sent => ({
  headers: { ...JSON_TYPE, 'content-encoding': encoding },
  body,
});

const FORMS: Record<string, (token: string) => Sent> = {
  'a batch': (token) => ({ body: batch(token) }),
  'a batch sent late, with numbers that no double holds': (token) => ({
    body: batch(token, { sent_at: '2026-01-01T00:20:00Z' }).replace(
      '"index":0',
      '"index":0,"long":9007199254740993,"not":NaN',
    ),
  }),
  'a list whose events name their key': (token) => ({
    body: JSON.stringify(events().map((one) => ({ ...one, token }))),
  }),
  'a list with the key in the query': (token) => ({
    url: `/e/?api_key=${token}`,
    body: JSON.stringify(events()),
  }),
  'one event': (token) => ({
    url: '/i/v0/e/',
    body: JSON.stringify({
      ...event(3),
      api_key: token,
      properties: { $set: { a: 1 }, padding: PADDING.repeat(900) },
    }),
  }),
  gzip: (token) => encoded('gzip', gzipSync(batch(token))),
  deflate: (token) => encoded('deflate', deflateSync(batch(token))),
  br: (token) =>
    encoded('br', brotliCompressSync(batch(token), { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } })),
  zstd: (token) => encoded('zstd', zstdCompressSync(batch(token))),
  'gzip in gzip': (token) => encoded('gzip, gzip', gzipSync(gzipSync(batch(token)))),
  lz64: (token) => ({ url: '/e/?compression=lz64', body: LZString.compressToBase64(batch(token)) }),
  'base64 in JSON': (token) => ({
    body: JSON.stringify({
      api_key: token,
      compression: 'gzip',
      data: gzipSync(JSON.stringify(events())).toString('base64'),
    }),
  }),
  'a form': (token) => ({
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `data=${encodeURIComponent(Buffer.from(JSON.stringify(events())).toString('base64'))}&api_key=${token}`,
  }),
  'the newer form': (token) => ({
    url: '/i/v1/analytics/events',
    headers: {
      ...JSON_TYPE,
      authorization: `Bearer ${token}`,
      'posthog-request-timestamp': '2026-01-01T00:20:00Z',
    },
    body: JSON.stringify({ batch: events().map((one) => ({ ...one, options: { cookieless_mode: false } })) }),
  }),
  'an import': (token) => ({
    body: JSON.stringify({
      api_key: token,
      historical_migration: true,
      batch: events()
        .map((one) => ({ ...one, timestamp: '2020-02-03T04:05:06.789Z' }))
        .filter((one) => (one as { event?: string }).event !== ''),
    }),
  }),
  'bytes that are not UTF-8': (token) => ({
    body: Buffer.concat([
      Buffer.from(batch(token).slice(0, -1)),
      Buffer.from(',"x":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}'),
    ]),
  }),
};

const send = (app: App, { url = '/batch/', headers = JSON_TYPE, body }: Sent) =>
  app.inject({ method: 'POST', url, headers, payload: body });

/** What is stored of a project, without what differs from run to run. */
async function stored({ projectId }: Tenant, isLate = false) {
  const all = async (sql: string) => (await api.pool.query(sql, [projectId])).rows;
  return {
    events: await all(
      `select event, distinct_id, ${isLate ? 'timestamp - created_at' : 'timestamp'} as time, properties, elements_chain, session_id, window_id, historical,
         person_mode, person_properties, group_0,
         case when event <> 'no uuid that is one' then uuid end as uuid
       from events where project_id = $1 order by properties ->> 'index'`,
    ),
    persons: await all(
      `select p.properties, p.is_identified, array_agg(d.distinct_id order by d.distinct_id) as ids
       from persons p join person_distinct_ids d on d.project_id = p.project_id and d.person_id = p.id
       where p.project_id = $1 group by p.id, p.properties, p.is_identified order by 3`,
    ),
    groups: await all('select group_key, properties from groups where project_id = $1 order by 1'),
  };
}

test.each(Object.entries(FORMS))('%s is stored as if the main thread had read it', async (name, form) => {
  const [aside, here] = [await api.createTenant('aside'), await api.createTenant('here')];
  expect(Buffer.byteLength(form(here.projectToken).body) > 1000).toBe(true);
  const answers = [await send(api.app, form(aside.projectToken)), await send(plain, form(here.projectToken))];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
  expect(answers[0]?.json()).toEqual(answers[1]?.json());
  // Where the time of sending corrects the clock, times depend on the time of receipt.
  const isLate = /sent late|newer form/.test(name);
  const [one, other] = [await stored(aside, isLate), await stored(here, isLate)];
  // Jest takes long to compare so much, so it does where something differs.
  if (JSON.stringify(one) !== JSON.stringify(other)) expect(one).toEqual(other);
  expect(one.events.length).toBeGreaterThan(name === 'one event' ? 0 : 800);
});

const REFUSED: Record<string, (token: string, foreign: string) => Sent> = {
  'JSON that ends too early': (token) => ({ body: batch(token).slice(0, -20) }),
  'a key of nobody': () => ({ body: batch('phc_nobody') }),
  'no key': () => ({ body: JSON.stringify(events()) }),
  'a key that is no text': () => ({ body: JSON.stringify({ api_key: 7, batch: events() }) }),
  'two keys': (token, foreign) => ({
    body: JSON.stringify(events().map((one, index) => ({ ...one, token: index === 800 ? foreign : token }))),
  }),
  'an import of recent events': (token) => ({
    body: batch(token, {
      historical_migration: true,
      batch: events().map((one) => ({ ...one, timestamp: new Date().toISOString() })),
    }),
  }),
  'an import without a clear word': (token) => ({ body: batch(token, { historical_migration: 'perhaps' }) }),
  'no event': (token) => ({
    body: JSON.stringify({ api_key: token, padding: PADDING.repeat(2000), batch: [] }),
  }),
  'nesting without an end': (token) => ({
    body: `{"api_key":"${token}","event":"x","distinct_id":"y","properties":${'['.repeat(600_000)}`,
  }),
  'more values than an event may have': (token) => ({
    body: `{"api_key":"${token}","event":"x","distinct_id":"y","properties":{"a":[${'1,'.repeat(400_000)}1]}}`,
  }),
  'too many events': (token) => ({
    body: JSON.stringify({ api_key: token, batch: Array(100_001).fill({}) }),
  }),
  'a bomb': () => encoded('gzip', gzipSync(Buffer.alloc(60 * 1024 * 1024, '['))),
  'gzip that is none': (token) => encoded('gzip', Buffer.from(`${batch(token)}`.replace('{', 'x'))),
  'no JSON at all': () => ({ body: 'nonsense '.repeat(100_000) }),
};

test.each(Object.entries(REFUSED))(
  '%s is refused with the same words, and stores nothing',
  async (_name, form) => {
    const [one, other] = [await api.createTenant('one'), await api.createTenant('other')];
    const sent = form(one.projectToken, other.projectToken);
    const [aside, here] = [await send(api.app, sent), await send(plain, sent)];
    expect(aside.statusCode).toBeGreaterThanOrEqual(400);
    expect(aside.statusCode).toBeLessThan(500);
    const said = ({ statusCode, json }: typeof aside) => [statusCode, json()];
    expect(said(aside)).toEqual(said(here));
    expect((await stored(one)).events).toEqual([]);
    const held = await api.registry.getSingleMetric('sluice_capture_held_bytes')?.get();
    expect(held?.values[0]?.value).toBe(0);
  },
);

test('addresses are removed, and transformations see each event', async () => {
  const tenant = await api.createTenant('careful');
  await api.request(tenant, 'PATCH', `/api/projects/${tenant.projectId}/`, { anonymize_ips: true });
  const body = () =>
    JSON.stringify({
      api_key: tenant.projectToken,
      batch: events().map((one) => ({ ...one, uuid: undefined })),
    });
  const addresses = async () =>
    (
      await api.pool.query(
        `select count(*)::int as n, count(properties::jsonb -> '$ip')::int as ips from events where project_id = $1`,
        [tenant.projectId],
      )
    ).rows[0];
  expect((await send(api.app, { body: body() })).statusCode).toBe(200);
  expect(await addresses()).toMatchObject({ ips: 0 });
  const dropping = await api.request(tenant, 'POST', `/api/projects/${tenant.projectId}/hog_functions/`, {
    type: 'transformation',
    name: 'drop all',
    enabled: true,
    hog: 'if (event.properties.index < 600) { return null }; let changed := event; changed.properties.seen := true; return changed',
  });
  expect(dropping.statusCode).toBe(201);
  expect((await send(api.app, { body: body() })).statusCode).toBe(200);
  const seen = `select count(*)::int as n from events where project_id = $1 and properties::jsonb -> 'seen' is not null`;
  expect((await api.pool.query(seen, [tenant.projectId])).rows[0]).toEqual({ n: 273 });
  expect(await addresses()).toMatchObject({ n: 819 + 273, ips: 0 });
});

test('persons and groups are derived from nothing but the properties that are kept for them', () => {
  for (const one of events(60)) {
    const whole = capturedEvent({
      event: String(one.event),
      distinct_id: String(one.distinct_id),
      properties: one.properties as Record<string, unknown>,
    });
    const lean = { ...whole, properties: personPropertiesOf(whole) };
    const derived = (given: typeof whole) => {
      const said: unknown[] = [];
      return [
        effectOf(given, { n: 1 }, { n: 1 }),
        mergeOf(given),
        membershipsOf(given, (notice) => said.push(notice)),
        groupUpdateOf(given, (notice) => said.push(notice)),
        said,
      ];
    };
    expect(derived(lean)).toEqual(derived(whole));
    expect(lean.properties).not.toHaveProperty('padding');
  }
});

test('a thread reads the next body after one that is refused', async () => {
  const large = createLargeBodies();
  try {
    const many = Buffer.from(`[${'{"event":"x","distinct_id":"y"},'.repeat(20_000)}{}]`);
    const about = {
      contentType: undefined,
      contentEncoding: undefined,
      compression: undefined,
      data: undefined,
    };
    const opened = await large.open({ ...about, bytes: many });
    expect(opened).toMatchObject({ token: undefined, events: 20_001 });
    await expect(large.open({ ...about, bytes: Buffer.alloc(ONE_GO, '[') })).rejects.toBeInstanceOf(
      DecodeError,
    );
    await expect(large.open({ ...about, bytes: many })).resolves.toMatchObject({ events: opened.events });
  } finally {
    await large.close();
  }
});
