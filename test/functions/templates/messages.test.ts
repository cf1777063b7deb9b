// Templates for services that send messages: emails, SMS, notifications and pages.
import { expect, test } from '@jest/globals';
import { checkService, SECRET, type ServiceCase } from './service.ts';
import { ADA, PAID, trialsForFile } from './trial.ts';

const trials = trialsForFile();
const json = { 'content-type': 'application/json' };
const basic = (user: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${SECRET}`).toString('base64')}`,
});
const noEmail = { email: '{person.properties.missing}' };
const publication = 'https://api.beehiiv.com/v2/publications/pub_1/subscriptions';
const beehiiv = { ...json, authorization: `Bearer ${SECRET}` };

const CASES: ServiceCase[] = [
  {
    template: 'template-activecampaign',
    inputs: { accountName: 'shop', apiKey: SECRET, attributes: { 3: '{person.properties.first_name}' } },
    requests: [
      {
        method: 'POST',
        url: 'https://shop.api-us1.com/api/3/contact/sync',
        headers: { ...json, 'api-token': SECRET },
        body: {
          contact: {
            ...{ email: 'ada@shop.test', firstName: 'Ada', lastName: 'Lovelace', phone: '+4912345' },
            fieldValues: [{ field: '3', value: 'Ada' }],
          },
        },
      },
    ],
    refusal: { status: 422, body: { errors: [{ title: 'Email address is invalid.' }] } },
    says: 'Error from shop.api-us1.com (status 422): {',
    without: noEmail,
  },
  {
    template: 'template-mailgun-send-email',
    inputs: {
      ...{ domain_name: 'mg.shop.test', api_key: SECRET, host: 'api.eu.mailgun.net' },
      ...{ from: 'Shop <a@shop.test>', subject: 'Paid & done', text: '{event.event}' },
    },
    requests: [
      {
        method: 'POST',
        url: 'https://api.eu.mailgun.net/v3/mg.shop.test/messages',
        headers: { ...basic('api'), 'content-type': 'application/x-www-form-urlencoded' },
        body: 'from=Shop%20%3Ca%40shop.test%3E&to=ada%40shop.test&subject=Paid%20%26%20done&text=order%20paid',
      },
    ],
    refusal: { status: 400, body: { message: "'to' parameter is not a valid address" } },
    says: 'Error from api.eu.mailgun.net (status 400): {',
    without: { to: '{person.properties.missing}' },
  },
  {
    template: 'template-mailjet-create-contact',
    inputs: { api_key: 'public', secret_key: SECRET },
    answers: [{ status: 201, body: { Count: 1 } }],
    requests: [
      {
        method: 'POST',
        url: 'https://api.mailjet.com/v3/REST/contact/',
        headers: { ...json, ...basic('public') },
        body: { Email: 'ada@shop.test', Name: 'Ada Lovelace', IsExcludedFromCampaigns: false },
      },
    ],
    refusal: { status: 400, body: { ErrorMessage: 'Invalid email address' } },
    says: "Error from api.mailjet.com (status 400): {'ErrorMessage': 'Invalid email address'}",
    without: noEmail,
  },
  {
    template: 'template-mailjet-update-contact-list',
    inputs: { api_key: 'public', secret_key: SECRET, contact_list_id: '42' },
    answers: [{ status: 201 }],
    requests: [
      {
        method: 'POST',
        url: 'https://api.mailjet.com/v3/REST/contact/ada%40shop.test/managecontactslists',
        headers: { ...json, ...basic('public') },
        body: { ContactsLists: [{ Action: 'addnoforce', ListID: '42' }] },
      },
    ],
    refusal: { status: 404, body: { ErrorMessage: 'Object not found' } },
    says: "Error from api.mailjet.com (status 404): {'ErrorMessage': 'Object not found'}",
    without: noEmail,
  },
  {
    template: 'template-beehiiv',
    inputs: { apiKey: SECRET, publicationId: 'pub_1' },
    event: { properties: { utm_source: 'mail' } },
    answers: [{ status: 404 }, { status: 201 }],
    requests: [
      { method: 'GET', url: `${publication}/by_email/ada%40shop.test`, headers: beehiiv, body: '' },
      {
        method: 'POST',
        url: publication,
        headers: beehiiv,
        body: {
          ...{
            email: 'ada@shop.test',
            utm_source: 'mail',
            reactivate_existing: false,
            send_welcome_email: false,
          },
          custom_fields: [
            { name: 'First Name', value: 'Ada' },
            { name: 'Last Name', value: 'Lovelace' },
          ],
        },
      },
    ],
    refusal: { status: 401, body: { errors: [{ message: 'Invalid API key' }] } },
    says: 'Error looking up beehiiv subscription (status 401): {',
    without: noEmail,
  },
  {
    template: 'template-engage-so',
    inputs: { public_key: 'public', private_key: SECRET },
    requests: [
      {
        method: 'POST',
        url: 'https://api.engage.so/posthog',
        headers: { ...json, ...basic('public') },
        body: {
          ...PAID,
          url: `https://sluice.test/project/1/events/${PAID.uuid}/2026-01-01T00%3A00%3A00.000Z`,
        },
      },
    ],
    refusal: { status: 401, body: { error: 'Invalid key' } },
    says: "Error from api.engage.so (status 401): {'error': 'Invalid key'}",
  },
  {
    template: 'template-knock',
    inputs: { webhookUrl: `https://api.knock.app/integrations/receive/${SECRET}` },
    requests: [
      {
        method: 'POST',
        url: `https://api.knock.app/integrations/receive/${SECRET}`,
        headers: json,
        body: {
          ...{ type: 'track', event: 'order paid', userId: ADA.id, messageId: PAID.uuid },
          ...{ timestamp: PAID.timestamp, properties: { email: 'ada@shop.test' } },
        },
      },
    ],
    refusal: { status: 404, body: { message: 'not found' } },
    says: "Error from knock.app (status 404): {'message': 'not found'}",
    without: { userId: '{person.properties.missing}' },
  },
  {
    template: 'template-onesignal',
    inputs: { appId: 'app-1', apiKey: SECRET },
    requests: [
      {
        method: 'POST',
        url: 'https://api.onesignal.com/apps/app-1/custom_events',
        headers: { ...json, authorization: `Key ${SECRET}` },
        body: {
          events: [
            {
              ...{ name: 'order paid', external_id: ADA.id, timestamp: PAID.timestamp },
              properties: PAID.properties,
            },
          ],
        },
      },
    ],
    refusal: { status: 403, body: { errors: ['Access denied'] } },
    says: "Error sending event: 403 {'errors': ['Access denied']}",
    without: { externalId: '{person.properties.missing}' },
  },
  {
    template: 'template-kudosity-sms',
    inputs: { api_key: SECRET, sender: '61400000000', track_links: true },
    requests: [
      {
        method: 'POST',
        url: 'https://api.transmitmessage.com/v2/sms',
        headers: { ...json, 'x-api-key': SECRET },
        body: {
          ...{ message: 'order paid by ada@shop.test', sender: '61400000000', recipient: '+4912345' },
          ...{ message_ref: PAID.uuid, track_links: true },
        },
      },
    ],
    refusal: { status: 400, body: { error: 'Invalid sender' } },
    says: "Error from Kudosity API (status 400): {'error': 'Invalid sender'}",
    without: { recipient: '{person.properties.missing}' },
  },
  {
    template: 'template-pagerduty',
    inputs: { routing_key: SECRET, dedup_key: 'order', severity: 'critical', custom_details: {}, links: [] },
    answers: [{ status: 202, body: { status: 'success' } }],
    requests: [
      {
        method: 'POST',
        url: 'https://events.pagerduty.com/v2/enqueue',
        headers: json,
        body: {
          ...{ routing_key: SECRET, event_action: 'trigger', dedup_key: 'order', client: 'Sluice' },
          payload: {
            ...{ summary: 'order paid by ada@shop.test', source: 'Shop', severity: 'critical' },
            timestamp: PAID.timestamp,
          },
        },
      },
    ],
    refusal: { status: 400, body: { status: 'invalid event' } },
    says: "PagerDuty rejected the event: 400: {'status': 'invalid event'}",
  },
];

test.each(CASES)('$template speaks as its service documents', async (given) => {
  await checkService(trials, given);
});

test('a contact that Mailjet has already is no failure', async () => {
  const ErrorMessage = 'MJ18 A Contact resource with value "ada@shop.test" for Email already exists.';
  const tried = await trials.run('template-mailjet-create-contact', {
    inputs: { api_key: 'public', secret_key: SECRET },
    answers: [{ status: 400, body: { ErrorMessage } }],
  });
  expect([tried.status, tried.errors]).toEqual(['success', []]);
  expect(tried.logs.map(({ message }) => message)).toContain('The contact exists already.');
});

test('beehiiv updates subscribers, and brings them back if it is asked to', async () => {
  const inputs = { apiKey: SECRET, publicationId: 'pub_1' };
  const answers = [{ body: { data: { status: 'inactive' } } }];
  await trials.run('template-beehiiv', { inputs, answers });
  expect(trials.heard.map(({ method }) => method)).toEqual(['GET', 'PUT']);
  expect(trials.heard[1]?.body).toMatchObject({
    custom_fields: [{ name: 'First Name' }, { name: 'Last Name' }],
  });
  await trials.run('template-beehiiv', { inputs: { ...inputs, reactivateExisting: true }, answers });
  expect(trials.heard.map(({ method }) => method)).toEqual(['GET', 'POST', 'PUT']);
  expect(trials.heard[1]?.body).toMatchObject({ email: 'ada@shop.test', reactivate_existing: true });
  const refused = await trials.run('template-beehiiv', { inputs, answers: [...answers, { status: 400 }] });
  expect(refused.errors.join()).toContain('Error updating beehiiv subscription (status 400): {}');
});

test('PagerDuty resolves the incident of a key, and needs one', async () => {
  const inputs = { routing_key: SECRET, event_action: 'resolve' };
  await trials.run('template-pagerduty', { inputs: { ...inputs, dedup_key: 'order' } });
  expect(trials.heard[0]?.body).toEqual({ routing_key: SECRET, event_action: 'resolve', dedup_key: 'order' });
  const none = await trials.run('template-pagerduty', { inputs });
  expect(none.errors.join()).toContain('A dedup key is required to resolve an incident.');
  expect(trials.heard).toEqual([]);
});
