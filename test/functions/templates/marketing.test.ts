import { expect, test } from '@jest/globals';
import { checkService, SECRET, type ServiceCase } from './service.ts';
import { PAID, trialsForFile } from './trial.ts';

const trials = trialsForFile();
const json = { 'content-type': 'application/json' };
const bearer = { ...json, authorization: `Bearer ${SECRET}` };
const hubspot = { kind: 'hubspot', config: { access_token: SECRET } };
const customerio = { kind: 'customerio-track', config: { site_id: 'site', api_key: SECRET } };
const basic = (user: string) => ({
  ...json,
  authorization: `Basic ${Buffer.from(`${user}:${SECRET}`).toString('base64')}`,
});
const klaviyo = { ...json, authorization: `Klaviyo-API-Key ${SECRET}`, revision: '2024-10-15' };
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
          attributes: { firstname: 'Ada', lastname: 'Lovelace' },
        },
      },
    ],
    refusal: { status: 400, body: { errors: [{ reason: 'invalid', message: 'attribute is malformed' }] } },
    says: 'Customer.io refuses the request with status 400',
    without: { identifiers: { email: '{person.properties.missing}' } },
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
    says: 'HubSpot refuses the contact',
    without: noEmail,
  },
  {
    template: 'template-hubspot-event',
    inputs: { oauth: 1, event: 'pe12_order_paid' },
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
          properties: { hs_page_url: PAID.properties.$current_url },
        },
      },
    ],
    refusal: { status: 400, body: { category: 'VALIDATION_ERROR' } },
    says: "HubSpot refuses the request with status 400: {'category': 'VALIDATION_ERROR'}",
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
    says: 'SendGrid refuses the request with status 401',
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
    says: 'Brevo refuses the request with status 400',
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
        body: { email: 'ada@shop.test', userId: 'ada', firstName: 'Ada', lastName: 'Lovelace' },
      },
    ],
    refusal: { status: 400, body: { success: false, message: 'Invalid email' } },
    says: 'Loops refuses the request with status 400',
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
          ...{ email: 'ada@shop.test', userId: 'ada', eventName: 'order paid' },
          eventProperties: { amount: 5 },
        },
      },
    ],
    refusal: { status: 401, body: { error: 'Invalid API key' } },
    says: "Loops refuses the request with status 401: {'error': 'Invalid API key'}",
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
              ...{ email: 'ada@shop.test', external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace' },
              properties: { plan: 'pro' },
            },
          },
        },
      },
    ],
    refusal: { status: 400, body: { errors: [{ code: 'invalid', detail: 'Invalid email address' }] } },
    says: 'Klaviyo refuses the request with status 400',
    without: noEmail,
  },
  {
    template: 'template-klaviyo-event',
    inputs: { apiKey: SECRET },
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
              profile: { data: { type: 'profile', attributes: { email: 'ada@shop.test' } } },
              properties: { url: PAID.properties.$current_url },
              ...{ time: PAID.timestamp, unique_id: PAID.uuid },
            },
          },
        },
      },
    ],
    refusal: { status: 401, body: { errors: [{ code: 'not_authenticated' }] } },
    says: 'Klaviyo refuses the request with status 401',
    without: noEmail,
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
              properties: { url: PAID.properties.$current_url },
            },
          ],
        },
      },
    ],
    refusal: { status: 401, body: { message: 'Invalid API key' } },
    says: 'Braze refuses the request with status 401',
    without: { external_id: '{person.properties.missing}' },
  },
  {
    template: 'template-userlist',
    inputs: { push_key: SECRET },
    answers: [{ status: 202, body: '' }],
    requests: [
      {
        method: 'POST',
        url: 'https://push.userlist.com/users',
        headers: { ...json, authorization: `Push ${SECRET}` },
        body: {
          ...{ identifier: 'ada', email: 'ada@shop.test' },
          properties: { first_name: 'Ada', last_name: 'Lovelace' },
        },
      },
    ],
    refusal: { status: 422, body: { status: 422, code: 'unprocessable_content', errors: ['is invalid'] } },
    says: 'Userlist refuses the request with status 422',
    without: noEmail,
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
