// Templates for services that know customers: support, sales and tables.
import { expect, test } from '@jest/globals';
import { checkService, SECRET, type ServiceCase } from './service.ts';
import { ADA, PAID, trialsForFile } from './trial.ts';

const trials = trialsForFile();
const json = { 'content-type': 'application/json' };
const bearer = { ...json, authorization: `Bearer ${SECRET}` };
const basic = (user: string) => ({
  ...json,
  authorization: `Basic ${Buffer.from(`${user}:${SECRET}`).toString('base64')}`,
});
const noEmail = { email: '{person.properties.missing}' };
const token = (host: string) => ({ kind: 'bearer', config: { hosts: [host], access_token: SECRET } });
const intercom = { ...bearer, 'intercom-version': '2.11', accept: 'application/json' };
const search = {
  method: 'POST',
  url: 'https://api.intercom.io/contacts/search',
  headers: intercom,
  body: { query: { field: 'email', operator: '=', value: 'ada@shop.test' } },
};
const salesforce = { oauth: 1, instance_url: 'https://shop.my.salesforce.com/' };
const paidAt = Date.parse(PAID.timestamp) / 1000;

const CASES: ServiceCase[] = [
  {
    template: 'template-intercom',
    inputs: { oauth: 1, customProperties: { plan: 'pro' } },
    integration: token('api.intercom.io'),
    answers: [{ body: { total_count: 1, data: [{ id: 'c1' }] } }],
    requests: [
      search,
      {
        method: 'PUT',
        url: 'https://api.intercom.io/contacts/c1',
        headers: intercom,
        body: {
          ...{ email: 'ada@shop.test', name: 'Ada Lovelace', phone: '+4912345', last_seen_at: paidAt },
          custom_attributes: { plan: 'pro' },
        },
      },
    ],
    refusal: { status: 401, body: { type: 'error.list', errors: [{ code: 'unauthorized' }] } },
    says: "Error from intercom api (status 401): {'type': 'error.list'",
    without: noEmail,
  },
  {
    template: 'template-intercom-event',
    inputs: { oauth: 1, properties: { amount: '{event.properties.amount}' } },
    integration: token('api.intercom.io'),
    answers: [{ body: { total_count: 1, data: [{ id: 'c1' }] } }, { status: 202, body: '' }],
    requests: [
      search,
      {
        method: 'POST',
        url: 'https://api.intercom.io/events',
        headers: intercom,
        body: {
          ...{ event_name: 'order paid', created_at: paidAt, email: 'ada@shop.test' },
          metadata: { amount: 5 },
        },
      },
    ],
    refusal: { body: { total_count: 2, data: [] } },
    says: 'No unique contact found. Skipping...',
    without: noEmail,
  },
  {
    template: 'template-zendesk',
    inputs: { subdomain: 'shop', admin_email: 'admin@shop.test', token: SECRET },
    answers: [{ status: 201, body: { user: { id: 1 } } }],
    requests: [
      {
        method: 'POST',
        url: 'https://shop.zendesk.com/api/v2/users/create_or_update',
        headers: basic('admin@shop.test/token'),
        body: {
          user: {
            ...{ email: 'ada@shop.test', name: 'ada@shop.test', skip_verify_email: true },
            user_fields: { phone: '+4912345' },
          },
        },
      },
    ],
    refusal: { status: 422, body: { error: 'RecordInvalid' } },
    says: "Error from zendesk.com (status 422): {'error': 'RecordInvalid'}",
    without: noEmail,
  },
  {
    template: 'template-gleap',
    inputs: { apiKey: SECRET },
    requests: [
      {
        method: 'POST',
        url: 'https://api.gleap.io/admin/identify',
        headers: { ...json, 'api-token': SECRET },
        body: { userId: ADA.id, email: 'ada@shop.test', phone: '+4912345' },
      },
    ],
    refusal: { status: 401, body: { error: 'Unauthorized' } },
    says: "Error from gleap.io (status 401): {'error': 'Unauthorized'}",
    without: { userId: '{person.properties.missing}' },
  },
  {
    template: 'template-salesforce-create',
    inputs: {
      ...salesforce,
      properties: { Email: '{person.properties.email}', LastName: '{person.properties.last_name}' },
    },
    integration: token('shop.my.salesforce.com'),
    answers: [{ status: 201, body: { id: '003', success: true } }],
    requests: [
      {
        method: 'POST',
        url: 'https://shop.my.salesforce.com/services/data/v61.0/sobjects/Contact',
        headers: bearer,
        body: { Email: 'ada@shop.test', LastName: 'Lovelace' },
      },
    ],
    refusal: { status: 400, body: [{ errorCode: 'REQUIRED_FIELD_MISSING' }] },
    says: "Salesforce request to 'Contact' failed with status 400: [{'errorCode': 'REQUIRED_FIELD_MISSING'}]",
  },
  {
    template: 'template-salesforce-update',
    inputs: salesforce,
    integration: token('shop.my.salesforce.com'),
    event: { properties: { $browser: 'Firefox' } },
    answers: [{ status: 204, body: '' }],
    requests: [
      {
        method: 'PATCH',
        url: 'https://shop.my.salesforce.com/services/data/v61.0/sobjects/Lead/Email/ada%40shop.test',
        headers: bearer,
        body: { email: 'ada@shop.test', browser: 'Firefox' },
      },
    ],
    refusal: { status: 404, body: [{ errorCode: 'NOT_FOUND' }] },
    says: "Salesforce request to 'Lead/Email/ada@shop.test' failed with status 404: [{",
  },
  {
    template: 'template-attio',
    inputs: { apiKey: SECRET, personAttributes: { job_title: 'CEO', name: '{person.properties.missing}' } },
    requests: [
      {
        method: 'PUT',
        url: 'https://api.attio.com/v2/objects/people/records?matching_attribute=email_addresses',
        headers: bearer,
        body: {
          data: { values: { email_addresses: [{ email_address: 'ada@shop.test' }], job_title: 'CEO' } },
        },
      },
    ],
    refusal: { status: 400, body: { code: 'validation_type' } },
    says: "Error from api.attio.com (status 400): {'code': 'validation_type'}",
    without: noEmail,
  },
  {
    template: 'template-airtable',
    inputs: { access_token: SECRET, base_id: 'app1', table_name: 'Orders & more' },
    requests: [
      {
        method: 'POST',
        url: 'https://api.airtable.com/v0/app1/Orders%20%26%20more',
        headers: bearer,
        body: { fields: { Timestamp: PAID.timestamp, 'Person Name': 'ada@shop.test' }, typecast: true },
      },
    ],
    refusal: { status: 422, body: { error: { type: 'UNKNOWN_FIELD_NAME' } } },
    says: "Error from api.airtable.com (status 422): {'error': {'type': 'UNKNOWN_FIELD_NAME'}}",
  },
  {
    template: 'template-clickup',
    inputs: { oauth: 1, listId: '901', assigneeId: '12, 34', statusId: 'to do' },
    integration: token('api.clickup.com'),
    requests: [
      {
        method: 'POST',
        url: 'https://api.clickup.com/api/v2/list/901/task',
        headers: { ...json, authorization: SECRET },
        body: {
          ...{ name: 'order paid', assignees: [12, 34], status: 'to do', priority: 3 },
          description: `https://sluice.test/project/1/events/${PAID.uuid}/2026-01-01T00%3A00%3A00.000Z`,
        },
      },
    ],
    refusal: { status: 400, body: { err: 'Status does not exist', ECODE: 'ITEM_114' } },
    says: "Error from api.clickup.com (status 400): {'err': 'Status does not exist'",
    without: { taskName: '{event.properties.missing}' },
  },
];

test.each(CASES)('$template speaks as its service documents', async (given) => {
  await checkService(trials, given);
});

test('Intercom creates a contact that it does not know, in another region', async () => {
  const given = {
    inputs: { oauth: 1, region: 'api.eu.intercom.io', include_all_properties: true },
    integration: token('api.eu.intercom.io'),
  };
  const tried = await trials.run('template-intercom', {
    ...given,
    answers: [{ body: { total_count: 0, data: [] } }],
  });
  expect(tried.errors).toEqual([]);
  expect(trials.heard).toMatchObject([
    { url: 'https://api.eu.intercom.io/contacts/search' },
    {
      ...{ method: 'POST', url: 'https://api.eu.intercom.io/contacts' },
      body: { custom_attributes: ADA.properties },
    },
  ]);
  const twice = await trials.run('template-intercom', { ...given, answers: [{ body: { total_count: 2 } }] });
  expect(twice.errors.join()).toContain('Found multiple contacts with the same email address. Skipping...');
});

test('ClickUp takes a token of OAuth, and lists of assignees', async () => {
  const inputs = { oauth: 1, listId: '901', tokenType: 'oauth', assigneeId: '{[5, 6]}' };
  await trials.run('template-clickup', { inputs, integration: token('api.clickup.com') });
  expect(trials.heard).toMatchObject([{ headers: bearer, body: { assignees: [5, 6] } }]);
});

test('Salesforce says what a path lacks', async () => {
  const run = async (path: string) => {
    const inputs = { ...salesforce, path };
    const tried = await trials.run('template-salesforce-update', {
      inputs,
      integration: token('shop.my.salesforce.com'),
    });
    expect(trials.heard).toEqual([]);
    return tried.errors.join();
  };
  expect(await run('Lead/Email/{person.properties.missing}')).toContain(
    "Salesforce object path 'Lead/Email/' is missing a value.",
  );
  expect(await run('Lead')).toContain("Salesforce object path 'Lead' has no record identifier.");
});

test('secrets go to no other host', async () => {
  const inputs = { subdomain: 'evil.test/#', admin_email: 'a@b.c', token: SECRET };
  const zendesk = await trials.run('template-zendesk', { inputs });
  expect(zendesk.errors.join()).toContain(
    'The subdomain must be the part of the address before .zendesk.com',
  );
  const other = await trials.run('template-salesforce-create', {
    inputs: { ...salesforce, instance_url: 'https://evil.test' },
    integration: token('shop.my.salesforce.com'),
  });
  expect(other.status).toBe('error');
  expect(trials.heard).toEqual([]);
});
