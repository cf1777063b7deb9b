import { describe, expect, test } from '@jest/globals';
import { checkService, SECRET, type ServiceCase } from './service.ts';
import { ADA, PAID, trialsForFile } from './trial.ts';

const trials = trialsForFile();
const json = { 'content-type': 'application/json' };
const bearer = { ...json, authorization: `Bearer ${SECRET}` };
const hubspot = { kind: 'hubspot', config: { access_token: SECRET } };
const customerio = { kind: 'customerio-track', config: { site_id: 'site', api_key: SECRET } };
const basic = (user: string) => ({
  ...json,
  authorization: `Basic ${Buffer.from(`${user}:${SECRET}`).toString('base64')}`,
});
const klaviyo = { ...json, authorization: `Klaviyo-API-Key ${SECRET}`, revision: '2026-04-15' };
const noEmail = { email: '{person.properties.missing}' };

const CASES: ServiceCase[] = [
  {
    template: 'template-customerio',
    inputs: { customerio: 1 },
    integration: customerio,
    requests: [
      {
        method: 'POST',
        url: 'https://track.customer.io/api/v2/entity',
        headers: basic('site'),
        body: {
          ...{ type: 'person', action: 'event', name: 'order paid', timestamp: 1767225600 },
          identifiers: { email: 'ada@shop.test' },
          attributes: { email: 'ada@shop.test', firstname: 'Ada', lastname: 'Lovelace' },
        },
      },
    ],
    refusal: { status: 400, body: { errors: [{ reason: 'invalid', message: 'attribute is malformed' }] } },
    says: "Error from customer.io api: 400: {'errors': [{'reason': 'invalid'",
    without: { identifier_value: '{person.properties.missing}' },
  },
  {
    template: 'template-hubspot',
    inputs: { oauth: 1 },
    integration: hubspot,
    requests: [
      {
        method: 'POST',
        url: 'https://api.hubapi.com/crm/v3/objects/contacts/batch/upsert',
        headers: bearer,
        body: {
          inputs: [
            {
              ...{ idProperty: 'email', id: 'ada@shop.test' },
              properties: {
                ...{ email: 'ada@shop.test', firstname: 'Ada', lastname: 'Lovelace', phone: '+4912345' },
              },
            },
          ],
        },
      },
    ],
    refusal: { status: 207, body: { numErrors: 1, errors: [{ message: 'Property "x" does not exist' }] } },
    says: 'Error updating contact ada@shop.test (status 207): {',
    without: noEmail,
  },
  {
    template: 'template-hubspot-event',
    inputs: { oauth: 1, eventName: 'pe12_order_paid', properties: { price: '{event.properties.amount}' } },
    integration: hubspot,
    answers: [{ status: 204, body: '' }],
    requests: [
      {
        method: 'POST',
        url: 'https://api.hubapi.com/events/v3/send',
        headers: bearer,
        body: {
          ...{ eventName: 'pe12_order_paid', email: 'ada@shop.test' },
          ...{ occurredAt: PAID.timestamp, uuid: PAID.uuid },
          properties: { price: 5 },
        },
      },
    ],
    refusal: { status: 400, body: { category: 'VALIDATION_ERROR' } },
    says: "Error from api.hubapi.com api: 400: {'category': 'VALIDATION_ERROR'}",
    without: noEmail,
  },
  {
    template: 'template-sendgrid',
    inputs: { api_key: SECRET, custom_fields: { e1_T: '{event.event}' }, list_ids: 'a, b' },
    answers: [{ status: 202, body: { job_id: '1' } }],
    requests: [
      {
        method: 'PUT',
        url: 'https://api.sendgrid.com/v3/marketing/contacts',
        headers: bearer,
        body: {
          list_ids: ['a', 'b'],
          contacts: [
            {
              ...{ email: 'ada@shop.test', first_name: 'Ada', last_name: 'Lovelace' },
              custom_fields: { e1_T: 'order paid' },
            },
          ],
        },
      },
    ],
    refusal: { status: 401, body: { errors: [{ message: 'authorization required' }] } },
    says: 'Error from api.sendgrid.com (status 401): {',
    without: noEmail,
  },
  {
    template: 'template-brevo',
    inputs: { apiKey: SECRET },
    answers: [{ status: 201, body: { id: 21 } }],
    requests: [
      {
        method: 'POST',
        url: 'https://api.brevo.com/v3/contacts',
        headers: { ...json, 'api-key': SECRET },
        body: {
          ...{ email: 'ada@shop.test', updateEnabled: true },
          attributes: { FIRSTNAME: 'Ada', LASTNAME: 'Lovelace' },
        },
      },
    ],
    refusal: { status: 400, body: { code: 'invalid_parameter', message: 'Invalid email address' } },
    says: 'Error from api.brevo.com (status 400): {',
    without: noEmail,
  },
  {
    template: 'template-loops',
    inputs: { apiKey: SECRET },
    requests: [
      {
        method: 'PUT',
        url: 'https://app.loops.so/api/v1/contacts/update',
        headers: bearer,
        body: { email: 'ada@shop.test', userId: ADA.id, firstName: 'Ada', lastName: 'Lovelace' },
      },
    ],
    refusal: { status: 400, body: { success: false, message: 'Invalid email' } },
    says: 'Error from app.loops.so (status 400): {',
    without: noEmail,
  },
  {
    template: 'template-loops-event',
    inputs: { apiKey: SECRET, properties: { amount: '{event.properties.amount}' } },
    requests: [
      {
        method: 'POST',
        url: 'https://app.loops.so/api/v1/events/send',
        headers: bearer,
        body: {
          ...{ email: 'ada@shop.test', userId: ADA.id, eventName: 'order paid' },
          eventProperties: { amount: 5 },
        },
      },
    ],
    refusal: { status: 401, body: { error: 'Invalid API key' } },
    says: "Error from app.loops.so (status 401): {'error': 'Invalid API key'}",
    without: noEmail,
  },
  {
    template: 'template-klaviyo-user',
    inputs: { apiKey: SECRET, customProperties: { plan: 'pro' } },
    answers: [{ status: 201 }],
    requests: [
      {
        method: 'POST',
        url: 'https://a.klaviyo.com/api/profile-import',
        headers: klaviyo,
        body: {
          data: {
            type: 'profile',
            attributes: {
              ...{ email: 'ada@shop.test', external_id: ADA.id, first_name: 'Ada', last_name: 'Lovelace' },
              properties: { plan: 'pro' },
            },
          },
        },
      },
    ],
    refusal: { status: 400, body: { errors: [{ code: 'invalid', detail: 'Invalid email address' }] } },
    says: "Error from a.klaviyo.com api: 400: {'errors': [{'code': 'invalid'",
    without: { ...noEmail, externalId: '' },
  },
  {
    template: 'template-klaviyo-event',
    inputs: { apiKey: SECRET, attributes: { price: '{event.properties.amount}' } },
    answers: [{ status: 202, body: '' }],
    requests: [
      {
        method: 'POST',
        url: 'https://a.klaviyo.com/api/events',
        headers: klaviyo,
        body: {
          data: {
            type: 'event',
            attributes: {
              metric: { data: { type: 'metric', attributes: { name: 'order paid' } } },
              profile: {
                data: { type: 'profile', attributes: { email: 'ada@shop.test', external_id: ADA.id } },
              },
              properties: { price: 5 },
              ...{ time: PAID.timestamp, unique_id: PAID.uuid },
            },
          },
        },
      },
    ],
    refusal: { status: 401, body: { errors: [{ code: 'not_authenticated' }] } },
    says: 'Error from a.klaviyo.com api: 401: {',
    without: { ...noEmail, externalId: '' },
  },
  {
    template: 'template-braze',
    inputs: { apiKey: SECRET, brazeEndpoint: 'https://rest.iad-01.braze.com' },
    answers: [{ status: 201, body: { message: 'success' } }],
    requests: [
      {
        method: 'POST',
        url: 'https://rest.iad-01.braze.com/users/track',
        headers: bearer,
        body: {
          attributes: [{ external_id: 'ada', email: 'ada@shop.test' }],
          events: [
            {
              ...{ external_id: 'ada', name: 'order paid', time: PAID.timestamp },
              properties: PAID.properties,
            },
          ],
        },
      },
    ],
    refusal: { status: 401, body: { message: 'Invalid API key' } },
    says: "Error sending event: 401 {'message': 'Invalid API key'}",
    without: { event: { name: 'a' } },
  },
  {
    template: 'template-userlist',
    inputs: { push_key: SECRET },
    event: { event: '$identify' },
    answers: [{ status: 202, body: '' }],
    requests: [
      {
        method: 'POST',
        url: 'https://push.userlist.com/users',
        headers: { ...json, authorization: `Push ${SECRET}` },
        body: {
          ...{ identifier: ADA.id, email: 'ada@shop.test' },
          properties: { firstname: 'Ada', lastname: 'Lovelace' },
        },
      },
    ],
    refusal: { status: 422, body: { status: 422, code: 'unprocessable_content', errors: ['is invalid'] } },
    says: "Error from push.userlist.com (status 422): {'status': 422",
    without: { user_identifier: '{person.properties.missing}', user_email: '' },
  },
];

test.each(CASES)('$template speaks as its service documents', async (given) => {
  await checkService(trials, given);
});

test('Customer.io updates a person after $identify, in the EU, with all properties', async () => {
  await trials.run('template-customerio', {
    inputs: { customerio: 1, host: 'track-eu.customer.io', include_all_properties: true, attributes: {} },
    integration: { ...customerio, config: { ...customerio.config, region: 'eu' } },
    event: { event: '$identify' },
  });
  expect(trials.heard).toMatchObject([
    {
      url: 'https://track-eu.customer.io/api/v2/entity',
      body: { action: 'identify', attributes: { first_name: 'Ada', phone: '+4912345' } },
    },
  ]);
  expect(trials.heard[0]?.body).not.toHaveProperty('name');
});

test('an event without a person is skipped', async () => {
  const tried = await trials.run('template-brevo', { inputs: { apiKey: SECRET }, person: null });
  expect(tried.errors).toEqual([]);
  expect(trials.heard).toEqual([]);
});

test('Customer.io needs no connection, and takes page views', async () => {
  const inputs = {
    site_id: 'site',
    token: SECRET,
    identifier_key: 'id',
    identifier_value: '{event.distinct_id}',
  };
  const event = {
    event: '$pageview',
    properties: { $current_url: 'https://shop.test/', long: 'x'.repeat(1500) },
  };
  const tried = await trials.run('template-customerio', {
    inputs: { ...inputs, include_all_properties: true, attributes: {} },
    event,
  });
  expect(tried.errors).toEqual([]);
  expect(trials.heard).toMatchObject([
    {
      headers: basic('site'),
      body: {
        ...{ action: 'page', name: 'https://shop.test/', identifiers: { id: 'ada' } },
        attributes: { long: 'x'.repeat(1000) },
      },
    },
  ]);
  expect(trials.heard[0]?.body).not.toHaveProperty('attributes.$current_url');
  await trials.run('template-customerio', { inputs: { ...inputs, action: 'delete' } });
  expect(trials.heard[0]?.body).toEqual({ type: 'person', identifiers: { id: 'ada' }, action: 'delete' });
  const none = await trials.run('template-customerio', {});
  expect(none.errors.join()).toContain('Connect Customer.io, or give the site ID and the API key.');
  expect(trials.heard).toEqual([]);
});

describe('HubSpot', () => {
  const given = { inputs: { oauth: 1, include_all_properties: true, properties: {} }, integration: hubspot };
  const event = { properties: { amount: 5, isNew: true, note: 'hi', $ip: 'left out' } };
  const definitions = 'https://api.hubapi.com/events/v3/event-definitions';

  test('defines an event that it does not know', async () => {
    const answers = [
      { status: 404 },
      { status: 201, body: { fullyQualifiedName: 'pe1_order_paid' } },
      { status: 204 },
    ];
    const tried = await trials.run('template-hubspot-event', { ...given, event, answers });
    expect([tried.errors, trials.heard.length]).toEqual([[], 3]);
    expect(trials.heard).toMatchObject([
      { method: 'GET', url: `${definitions}/order_paid/?includeProperties=true` },
      {
        ...{ method: 'POST', url: definitions },
        body: {
          ...{ label: 'order_paid', name: 'order_paid', primaryObject: 'CONTACT' },
          propertyDefinitions: [
            { name: 'amount', type: 'number' },
            { name: 'isNew', type: 'enumeration', options: [{ value: 'true' }, { value: 'false' }] },
            { name: 'note', type: 'string' },
          ],
        },
      },
      { body: { eventName: 'pe1_order_paid', properties: { amount: 5, isNew: true, note: 'hi' } } },
    ]);
  });

  test('defines properties that are missing, and refuses those of another type', async () => {
    const known = (type: string) => ({
      body: { fullyQualifiedName: 'pe1_order_paid', properties: [{ name: 'amount', type }] },
    });
    await trials.run('template-hubspot-event', { ...given, event, answers: [known('number'), {}] });
    expect(trials.heard.map(({ url }) => url)).toEqual([
      `${definitions}/order_paid/?includeProperties=true`,
      ...[`${definitions}/order_paid/property`, `${definitions}/order_paid/property`],
      'https://api.hubapi.com/events/v3/send',
    ]);
    const wrong = await trials.run('template-hubspot-event', { ...given, event, answers: [known('string')] });
    expect(wrong.errors.join()).toContain(
      "Property type mismatch for the following properties: [{'key': 'amount', 'value': 5}]. Not sending event.",
    );
    expect(trials.heard.length).toBe(1);
    const name = await trials.run('template-hubspot-event', { ...given, event: { event: '6months' } });
    expect(name.errors.join()).toContain('Event name must start with a letter');
  });

  test('updates a company, or creates it with the property that tells companies apart', async () => {
    const groups = { company: { id: 'a/1', properties: { name: 'Shop', domain: 'shop.test' } } };
    const company = { inputs: { oauth: 1 }, integration: hubspot, groups };
    const tried = await trials.run('template-hubspot-company', company);
    expect(tried.errors).toEqual([]);
    const properties = { name: 'Shop', domain: 'shop.test', posthog_group_id: 'a/1' };
    const update = {
      method: 'PATCH',
      url: 'https://api.hubapi.com/crm/v3/objects/companies/a%2F1?idProperty=posthog_group_id',
      body: { properties },
    };
    expect(trials.heard).toMatchObject([update]);
    const answers = [{ status: 404 }, { status: 409 }, { status: 201 }];
    const created = await trials.run('template-hubspot-company', { ...company, answers });
    expect(created.errors).toEqual([]);
    expect(created.logs.map(({ level, message }) => [level, message])).toContainEqual([
      ...['info', 'HTTP fetch failed on attempt 1 with status code 404.'],
    ]);
    expect(trials.heard).toMatchObject([
      update,
      { url: 'https://api.hubapi.com/crm/v3/properties/companies', body: { hasUniqueValue: true } },
      { method: 'POST', url: 'https://api.hubapi.com/crm/v3/objects/companies', body: { properties } },
    ]);
    const refused = await trials.run('template-hubspot-company', { ...company, answers: [{ status: 400 }] });
    expect(refused.errors.join()).toContain('Error updating company a/1 (status 400): {}');
    const skipped = await trials.run('template-hubspot-company', { ...company, groups: {} });
    expect([skipped.errors, trials.heard]).toEqual([[], []]);
  });
});

test('Userlist gets companies and events too', async () => {
  const inputs = { push_key: SECRET };
  const groups = { account: { id: 'a1', properties: { name: 'Shop', industry: 'retail' } } };
  const company = { identifier: 'a1', name: 'Shop', properties: { industry: 'retail' } };
  await trials.run('template-userlist', { inputs, groups, event: { event: '$groupidentify' } });
  expect(trials.heard).toMatchObject([
    { url: 'https://push.userlist.com/companies', body: { ...company, user: { identifier: ADA.id } } },
  ]);
  await trials.run('template-userlist', { inputs, groups, event: { event: 'order_paid' } });
  expect(trials.heard).toMatchObject([
    {
      url: 'https://push.userlist.com/events',
      body: { name: 'order_paid', occurred_at: PAID.timestamp, user: { identifier: ADA.id }, company },
    },
  ]);
  const skipped = await trials.run('template-userlist', { inputs, event: { event: 'order paid' } });
  expect([skipped.errors, trials.heard]).toEqual([[], []]);
});

test('all properties are sent when that is asked for, without those of the library', async () => {
  await trials.run('template-loops-event', { inputs: { apiKey: SECRET, include_all_properties: true } });
  expect(trials.heard[0]?.body).toMatchObject({ eventProperties: { amount: 5, currency: 'EUR' } });
  expect(trials.heard[0]?.body).not.toHaveProperty('eventProperties.$ip');
});
