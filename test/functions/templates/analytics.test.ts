import { describe, expect, test } from '@jest/globals';
import { checkService, SECRET, type ServiceCase } from './service.ts';
import { ADA, PAID, trialsForFile } from './trial.ts';

const trials = trialsForFile();
const json = { 'content-type': 'application/json' };
const basic = (user: string, password = '') => ({
  ...json,
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});
const bearer = { authorization: `Bearer ${SECRET}` };
const NOW = '2026-01-01T00:00:05Z';
const missing = '{person.properties.missing}';

const CASES: ServiceCase[] = [
  {
    template: 'template-rudderstack',
    inputs: { host: 'https://data.shop.test/v1/batch/', token: SECRET },
    event: { properties: { ...PAID.properties, $device_id: 'd1', $os: 'Linux', $lib: 'web' } },
    requests: [
      {
        method: 'POST',
        url: 'https://data.shop.test/v1/batch',
        headers: basic(SECRET),
        body: {
          sentAt: NOW,
          batch: [
            {
              ...{ type: 'track', channel: 'server', event: 'order paid', messageId: PAID.uuid },
              ...{ originalTimestamp: PAID.timestamp, userId: ADA.id, anonymousId: 'd1' },
              properties: { amount: 5, currency: 'EUR' },
              context: {
                ...{ app: { name: 'sluice' }, ip: '81.2.69.142', os: { name: 'Linux' } },
                ...{ library: { name: 'web' }, page: { url: PAID.properties.$current_url } },
              },
            },
          ],
        },
      },
    ],
    refusal: { status: 401, body: 'Invalid Write Key' },
    says: 'Error from RudderStack (status 401): Invalid Write Key',
  },
  {
    template: 'template-avo',
    inputs: { apiKey: SECRET, environment: 'prod', excludeProperties: 'currency' },
    event: {
      properties: { ...PAID.properties, part: 0.5, is_new: true, tags: ['a'], more: { a: 1 }, none: null },
    },
    requests: [
      {
        method: 'POST',
        url: 'https://api.avo.app/inspector/posthog/v1/track',
        headers: { ...json, accept: 'application/json', 'api-key': SECRET, env: 'prod' },
        body: [
          {
            ...{ apiKey: SECRET, env: 'prod', appName: 'Sluice', appVersion: '1.0.0', libVersion: '1.0.0' },
            ...{ libPlatform: 'node', samplingRate: 1, sessionId: PAID.uuid, trackingId: '' },
            ...{ createdAt: '2026-01-01T00:00:00Z', messageId: PAID.uuid, type: 'event' },
            ...{ eventName: 'order paid', avoFunction: false, eventId: null, eventHash: null },
            eventProperties: [
              { propertyName: 'amount', propertyType: 'int' },
              { propertyName: 'part', propertyType: 'float' },
              { propertyName: 'is_new', propertyType: 'boolean' },
              { propertyName: 'tags', propertyType: 'list' },
              { propertyName: 'more', propertyType: 'object' },
              { propertyName: 'none', propertyType: 'null' },
            ],
          },
        ],
      },
    ],
    refusal: { status: 403, body: { error: 'unknown api key' } },
    says: "Error from api.avo.app (status 403): {'error': 'unknown api key'}",
  },
  {
    template: 'template-klime',
    inputs: { writeKey: SECRET, properties: { plan: 'pro' } },
    event: { properties: { ...PAID.properties, $group_0: 'acme' } },
    requests: [
      {
        method: 'POST',
        url: 'https://i.klime.com/v1/batch',
        headers: { ...json, ...bearer },
        body: {
          batch: [
            {
              ...{ type: 'track', event: 'order paid', messageId: PAID.uuid, timestamp: PAID.timestamp },
              ...{ userId: 'ada', groupId: 'acme', properties: { amount: 5, currency: 'EUR', plan: 'pro' } },
              context: { library: { name: 'sluice', version: '1.0.0' } },
            },
          ],
        },
      },
    ],
    refusal: { status: 400, body: { errors: ['batch is empty'] } },
    says: "Error from i.klime.com (status 400): {'errors': ['batch is empty']}",
    without: { action: 'group', groupId: missing },
  },
  {
    template: 'template-accoil',
    inputs: { apiKey: SECRET },
    requests: [
      {
        method: 'POST',
        url: 'https://in.accoil.com/segment',
        headers: basic(SECRET),
        body: { type: 'track', event: 'order paid', timestamp: PAID.timestamp, userId: 'ada' },
      },
    ],
    refusal: { status: 403, body: { message: 'Forbidden' } },
    says: "Error from Accoil (status 403): {'message': 'Forbidden'}",
  },
  {
    template: 'template-appcues',
    inputs: { accountId: '12/3', apiKey: 'key', apiSecret: SECRET, userId: '{person.properties.email}' },
    event: { event: '$identify', properties: {} },
    requests: [
      {
        method: 'PATCH',
        url: 'https://api.appcues.com/v2/accounts/12%2F3/users/ada%40shop.test/profile',
        headers: basic('key', SECRET),
        body: { email: 'ada@shop.test', first_name: 'Ada', last_name: 'Lovelace' },
      },
    ],
    refusal: { status: 404, body: { title: 'Not found' } },
    says: "Error from Appcues API (status 404): {'title': 'Not found'}",
    without: { userId: missing },
  },
];

test.each(CASES)('$template speaks as its service documents', async (given) => {
  await checkService(trials, given);
});

/** The body of the only request, or undefined if nothing was sent. */
const sent = async (id: string, given: Parameters<typeof trials.run>[1]): Promise<unknown> => {
  const tried = await trials.run(id, given);
  expect(tried.errors).toEqual([]);
  expect(trials.heard.length).toBeLessThan(2);
  return trials.heard[0]?.body;
};

describe('RudderStack', () => {
  const inputs = { token: SECRET };
  const callOf = async (event: object) =>
    ((await sent('template-rudderstack', { inputs, event })) as { batch: object[] } | undefined)?.batch[0];

  test('gets what an event means', async () => {
    expect(
      await callOf({ event: '$identify', properties: { $set: { plan: 'pro', none: null } } }),
    ).toMatchObject({
      ...{ type: 'identify', userId: ADA.id, traits: { plan: 'pro' } },
      context: { traits: { plan: 'pro' } },
    });
    expect(await callOf({ event: '$create_alias', properties: { alias: 'ada-2' } })).toMatchObject({
      ...{ type: 'alias', userId: 'ada-2', previousId: 'ada' },
    });
    expect(await callOf({ event: '$create_alias', properties: {} })).toBeUndefined();
    const page = { $current_url: 'https://shop.test/', $pathname: '/', title: 'Shop', plan: 'pro' };
    expect(await callOf({ event: '$pageview', properties: page })).toMatchObject({
      ...{ type: 'page', name: 'Shop' },
      properties: { url: 'https://shop.test/', path: '/', title: 'Shop', plan: 'pro' },
    });
    expect(await callOf({ event: '$screen', properties: { $screen_name: 'Cart' } })).toMatchObject({
      ...{ type: 'screen', name: 'Cart' },
    });
    expect(await callOf({ event: '$autocapture', properties: { $event_type: 'click' } })).toMatchObject({
      ...{ type: 'track', event: 'click' },
    });
  });
});

test('RudderStack gets no events of nobody', async () => {
  const inputs = { token: SECRET, identifier: missing };
  expect(await sent('template-rudderstack', { inputs })).toBeUndefined();
  const event = { properties: { $anon_distinct_id: 'a1' } };
  expect(await sent('template-rudderstack', { inputs, event })).toMatchObject({
    batch: [{ anonymousId: 'a1' }],
  });
});

describe('Clearbit', () => {
  const id = 'template-clearbit';
  const inputs = { api_key: SECRET };
  const known = { person: { name: { fullName: 'Ada Lovelace' } }, company: { name: 'Shop' } };

  test('stores what it learns about a person', async () => {
    const tried = await trials.run(id, { inputs, answers: [{ body: known }] });
    expect(tried.status).toBe('success');
    expect(trials.heard).toMatchObject([
      {
        ...{ method: 'GET', headers: bearer, body: '' },
        url: 'https://person-stream.clearbit.com/v2/combined/find?email=ada%40shop.test',
      },
    ]);
    expect(tried.invocations[0]?.captured).toMatchObject([
      { event: '$set', distinct_id: 'ada', properties: { $set_once: { ...known, clearbit_enriched: true } } },
    ]);
    expect(JSON.stringify(tried)).not.toContain(SECRET);
  });

  test('asks for nobody twice, and not because of its own events', async () => {
    const person = { ...ADA, properties: { ...ADA.properties, clearbit_enriched: true } };
    expect(await sent(id, { inputs, person })).toBeUndefined();
    expect(await sent(id, { inputs, event: { event: '$set' } })).toBeUndefined();
    expect(await sent(id, { inputs: { ...inputs, email: missing } })).toBeUndefined();
    expect(trials.heard).toEqual([]);
  });

  test('knows what answers mean', async () => {
    const unknown = await trials.run(id, { inputs, answers: [{ status: 404, body: { error: 'unknown' } }] });
    expect([unknown.status, unknown.invocations[0]?.captured]).toEqual(['success', []]);
    const nothing = await trials.run(id, { inputs, answers: [{ body: { person: null, company: null } }] });
    expect([nothing.status, nothing.invocations[0]?.captured]).toEqual(['success', []]);
    const refused = await trials.run(id, {
      inputs,
      answers: [{ status: 402, body: { error: 'over quota' } }],
    });
    expect(refused.errors.join()).toContain('Error from person-stream.clearbit.com (status 402)');
    expect(refused.invocations[0]?.captured).toEqual([]);
  });
});

describe('Accoil', () => {
  const inputs = { apiKey: SECRET };
  const callOf = (event: object, more: object = {}) => sent('template-accoil', { inputs, event, ...more });

  test('gets what an event means, without where somebody is', async () => {
    expect(await callOf({ event: '$pageview', properties: { title: 'Cart' } })).toMatchObject({
      ...{ type: 'page', name: 'Cart', userId: 'ada' },
    });
    expect(await callOf({ event: '$screen', properties: { $screen_name: 'Cart' } })).toMatchObject({
      type: 'screen',
    });
    const mappings = {
      user_traits_mapping: {
        zip: '1',
        ip: '1.2.3.4',
        last_ip: '1.2.3.4',
        $geoip_city_name: 'Ulm',
        email: 'other',
      },
    };
    expect(await callOf({ event: '$set', properties: {} }, { mappings })).toEqual({
      ...{ type: 'identify', userId: 'ada', timestamp: PAID.timestamp },
      traits: { zip: '1', email: 'ada@shop.test' },
    });
    const properties = { $group_key: 'acme', $group_set: { name: 'Acme', mrr: '12.5' } };
    expect(await callOf({ event: '$groupidentify', properties })).toMatchObject({
      ...{ type: 'group', groupId: 'acme', traits: { name: 'Acme', mrr: 12.5 } },
    });
  });

  test('gets no other events of the system, and no pages without a name', async () => {
    expect(await callOf({ event: '$feature_flag_called' })).toBeUndefined();
    expect(await callOf({ event: '$pageview', properties: {} })).toBeUndefined();
    expect(await callOf({ event: '$groupidentify', properties: {} })).toBeUndefined();
  });

  test('gets tests at its test system, without the mark of the key', async () => {
    await trials.run('template-accoil', { inputs: { apiKey: `stg_${SECRET}` } });
    expect(trials.heard).toMatchObject([
      { url: 'https://instaging.accoil.com/segment', headers: basic(SECRET) },
    ]);
  });
});

describe('Klime', () => {
  const callOf = async (given: Parameters<typeof trials.run>[1]) =>
    (
      (await sent('template-klime', { ...given, inputs: { writeKey: SECRET, ...given.inputs } })) as
        | { batch: object[] }
        | undefined
    )?.batch[0];

  test('gets users and accounts', async () => {
    expect(await callOf({ event: { event: '$identify' } })).toMatchObject({
      ...{ type: 'identify', userId: 'ada', traits: { email: 'ada@shop.test' } },
    });
    const all = await callOf({ event: { event: '$set' }, inputs: { include_all_properties: true } });
    expect(all).toMatchObject({ traits: ADA.properties });
    const properties = { $group_key: 'acme', $group_set: { plan: 'pro' } };
    expect(await callOf({ event: { event: '$groupidentify', properties } })).toMatchObject({
      ...{ type: 'group', groupId: 'acme', traits: { plan: 'pro' } },
    });
    expect(await callOf({ event: { event: '$identify' }, inputs: { userId: missing } })).toBeUndefined();
  });
});

test('Appcues gets events in its region', async () => {
  const inputs = {
    accountId: '1',
    apiKey: 'key',
    apiSecret: SECRET,
    region: 'EU',
    include_all_properties: true,
  };
  expect(await sent('template-appcues', { inputs, mappings: { groupId: 'acme' } })).toEqual({
    ...{ name: 'order paid', timestamp: PAID.timestamp, group_id: 'acme' },
    attributes: { amount: 5, currency: 'EUR' },
  });
  expect(trials.heard[0]).toMatchObject({
    method: 'POST',
    url: 'https://api.eu.appcues.com/v2/accounts/1/users/ada/events',
  });
  const nobody = { inputs, person: null, event: { event: '$identify' } };
  expect(await sent('template-appcues', nobody)).toBeUndefined();
});
