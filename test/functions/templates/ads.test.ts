import { createHash, generateKeyPairSync } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { checkService, SECRET, type ServiceCase } from './service.ts';
import { ADA, GOOGLE_TOKEN, PAID, trialsForFile } from './trial.ts';

const trials = trialsForFile();
const json = { 'content-type': 'application/json' };
const sha = (text: string) => createHash('sha256').update(text).digest('hex');
const event = { properties: { ...PAID.properties, value: '5.5', $raw_user_agent: 'Firefox' } };
const ordered = {
  event: 'Order Completed',
  properties: {
    ...event.properties,
    order_id: 'o-1',
    products: [
      { sku: 'A1', price: 2, quantity: 2, category: 'toys', name: 'Ball' },
      { product_id: 'B2', price: 1.5, category: 'books', name: 'Atlas' },
    ],
  },
};
const hashes = { fn: sha('ada'), ln: sha('lovelace') };
const seconds = Date.parse(PAID.timestamp) / 1000;

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const googleKey = {
  ...{ type: 'service_account', client_email: 'bot@x.iam.gserviceaccount.com', project_id: 'x' },
  private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
};

const CASES: ServiceCase[] = [
  {
    template: 'template-google-ads',
    inputs: {
      ...{ oauth: 1, developerToken: SECRET, customerId: '123-456-7890', loginCustomerId: '111-222-3333' },
      ...{ conversionActionId: '987', gclid: 'Cj0K' },
    },
    integration: {
      kind: 'google-service-account',
      config: { key: googleKey, scope: 'https://www.googleapis.com/auth/adwords' },
    },
    event: ordered,
    answers: [{ body: { results: [{ gclid: 'Cj0K' }] } }],
    requests: [
      {
        method: 'POST',
        url: 'https://googleads.googleapis.com/v23/customers/1234567890:uploadClickConversions',
        headers: {
          ...json,
          ...{ authorization: `Bearer ${GOOGLE_TOKEN}`, 'developer-token': SECRET },
          'login-customer-id': '1112223333',
        },
        body: {
          conversions: [
            {
              gclid: 'Cj0K',
              conversionAction: 'customers/1234567890/conversionActions/987',
              conversionDateTime: `${PAID.timestamp.slice(0, 19).replace('T', ' ')}+00:00`,
              ...{ conversionValue: 5.5, currencyCode: 'EUR', orderId: 'o-1' },
            },
          ],
          partialFailure: true,
        },
      },
    ],
    refusal: {
      status: 200,
      body: { partialFailureError: { code: 3, message: 'The click is too old., at conversions[0]' } },
    },
    says: 'Google Ads refused the conversion: The click is too old., at conversions[0]',
    without: { gclid: '' },
  },
  {
    template: 'template-meta-ads',
    inputs: { accessToken: SECRET, pixelId: '123', testEventCode: 'TEST1' },
    event: ordered,
    requests: [
      {
        method: 'POST',
        url: 'https://graph.facebook.com/v25.0/123/events',
        headers: json,
        body: {
          ...{ access_token: SECRET, test_event_code: 'TEST1' },
          data: [
            {
              ...{
                event_name: 'Purchase',
                event_id: PAID.uuid,
                event_time: seconds,
                action_source: 'website',
              },
              event_source_url: PAID.properties.$current_url,
              user_data: {
                ...{ em: sha('ada@shop.test'), ph: sha('4912345'), fn: sha('ada'), ln: sha('lovelace') },
                ...{ client_ip_address: '81.2.69.142', client_user_agent: 'Firefox' },
              },
              custom_data: {
                ...{ currency: 'EUR', value: 5.5, content_type: 'product', order_id: 'o-1', num_items: 3 },
                content_ids: ['A1', 'B2'],
                contents: [
                  { id: 'A1', quantity: 2, item_price: 2 },
                  { id: 'B2', quantity: null, item_price: 1.5 },
                ],
              },
            },
          ],
        },
      },
    ],
    refusal: { status: 400, body: { error: { message: 'Invalid parameter', code: 100 } } },
    says: "Error from graph.facebook.com (status 400): {'error': {'message': 'Invalid parameter', 'code': 100}}",
  },
  {
    template: 'template-tiktok-ads',
    inputs: { accessToken: SECRET, pixelId: 'C1', eventName: 'CompletePayment' },
    event,
    answers: [{ body: { code: 0, message: 'OK' } }],
    requests: [
      {
        method: 'POST',
        url: 'https://business-api.tiktok.com/open_api/v1.3/event/track/',
        headers: { ...json, 'access-token': SECRET },
        body: {
          ...{ event_source: 'web', event_source_id: 'C1' },
          data: [
            {
              ...{ event: 'CompletePayment', event_time: seconds, event_id: PAID.uuid },
              user: {
                ...{ email: sha('ada@shop.test'), phone: sha('+4912345'), external_id: sha(ADA.id) },
                ...{ ip: '81.2.69.142', user_agent: 'Firefox' },
              },
              properties: { currency: 'EUR', value: 5.5 },
              page: { url: PAID.properties.$current_url },
            },
          ],
        },
      },
    ],
    refusal: { status: 200, body: { code: 40105, message: 'Access token is incorrect' } },
    says: "Error from business-api.tiktok.com (status 200): {'code': 40105, 'message': 'Access token is incorrect'}",
  },
  {
    template: 'template-snapchat-ads',
    inputs: { oauth: 1, pixelId: 'p/1' },
    integration: { kind: 'bearer', config: { access_token: SECRET, hosts: ['tr.snapchat.com'] } },
    event: ordered,
    requests: [
      {
        method: 'POST',
        url: `https://tr.snapchat.com/v3/p%2F1/events?access_token=${SECRET}`,
        headers: json,
        body: {
          data: [
            {
              ...{ event_name: 'PURCHASE', event_id: PAID.uuid, event_time: seconds, action_source: 'WEB' },
              event_source_url: PAID.properties.$current_url,
              user_data: {
                ...{ em: sha('ada@shop.test'), ph: sha('4912345'), ...hashes, external_id: sha(ADA.id) },
                ...{ client_ip_address: '81.2.69.142', client_user_agent: 'Firefox' },
              },
              custom_data: {
                ...{ value: 5.5, currency: 'EUR', num_items: 3, order_id: 'o-1' },
                content_ids: ['A1', 'B2'],
                content_category: ['toys', 'books'],
                contents: [
                  { id: 'A1', item_price: 2, quantity: 2, delivery_category: 'normal' },
                  { id: 'B2', item_price: 1.5, quantity: null, delivery_category: 'normal' },
                ],
              },
            },
          ],
        },
      },
    ],
    refusal: { status: 400, body: { status: 'INVALID', reason: 'Invalid event_name' } },
    says: "Error from tr.snapchat.com (status 400): {'status': 'INVALID', 'reason': 'Invalid event_name'}",
    without: { userData: { em: '' } },
  },
  {
    template: 'template-reddit-conversions-api',
    inputs: { accountId: 't2_x', conversionsAccessToken: SECRET },
    event: ordered,
    requests: [
      {
        method: 'POST',
        url: 'https://ads-api.reddit.com/api/v2.0/conversions/events/t2_x',
        headers: { ...json, authorization: `Bearer ${SECRET}`, 'user-agent': 'sluice' },
        body: {
          test_mode: false,
          events: [
            {
              event_at: PAID.timestamp,
              event_type: { tracking_type: 'Purchase' },
              user: {
                ...{ email: sha('ada@shop.test'), external_id: sha(ADA.id), ip_address: sha('81.2.69.142') },
                user_agent: 'Firefox',
              },
              event_metadata: {
                ...{ conversion_id: PAID.uuid, value: 5.5, currency: 'EUR' },
                products: [
                  { id: 'A1', category: 'toys', name: 'Ball' },
                  { id: 'B2', category: 'books', name: 'Atlas' },
                ],
              },
            },
          ],
        },
      },
    ],
    refusal: { status: 401, body: { message: 'Unauthorized' } },
    says: "Error from ads-api.reddit.com (status 401): {'message': 'Unauthorized'}",
  },
];

test.each(CASES)('$template speaks as its service documents', async (given) => {
  await checkService(trials, given);
});

test('values are normalized before they are hashed, and nothing empty is hashed', async () => {
  const given = { inputs: { accessToken: SECRET, pixelId: '123' }, mappings: false as const };
  const person = { id: 'p', properties: { email: ' Ada@Shop.TEST ', phone: '+49 (123) 45-6' } };
  await trials.run('template-meta-ads', { ...given, person });
  expect(trials.heard[0]?.body).toMatchObject({
    data: [{ event_name: 'order paid', user_data: { em: sha('ada@shop.test'), ph: sha('49123456') } }],
  });
  expect(trials.heard[0]?.body).not.toHaveProperty('data.0.user_data.fn');
  const nobody = await trials.run('template-meta-ads', { ...given, person: null });
  expect(nobody.errors).toEqual([]);
  expect(trials.heard[0]?.body).toHaveProperty('data.0.user_data', { client_ip_address: '81.2.69.142' });
});

const account: Record<string, object> = {
  'template-meta-ads': { inputs: { accessToken: SECRET, pixelId: '123' } },
  'template-snapchat-ads': {
    inputs: { oauth: 1, pixelId: '1' },
    integration: { kind: 'bearer', config: { access_token: SECRET, hosts: ['tr.snapchat.com'] } },
  },
  'template-reddit-conversions-api': { inputs: { accountId: 't2_x', conversionsAccessToken: SECRET } },
};
/** What a service calls the event that it heard. */
const nameOf = (body: unknown): unknown => {
  const { data, events } = body as { data?: { event_name: string }[]; events?: { event_type: object }[] };
  return data?.[0]?.event_name ?? Object.values(events?.[0]?.event_type ?? {})[0];
};

test.each([
  ['template-meta-ads', 'PageView', 'ViewContent', 'Search', 'AddToCart', 'InitiateCheckout', 'Lead'],
  ['template-snapchat-ads', 'PAGE_VIEW', 'VIEW_CONTENT', 'SEARCH', 'ADD_CART', 'START_CHECKOUT', undefined],
  ['template-reddit-conversions-api', 'PageVisit', 'ViewContent', 'Search', 'AddToCart', undefined, 'Lead'],
])('the mappings of %s name events as their service does', async (id, ...names) => {
  const theirs = ['$pageview', 'Product Viewed', 'Products Searched', 'Product Added', 'Checkout Started'];
  const properties = { ...event.properties, sku: 'A1', quantity: 2, query: 'ball' };
  for (const [index, name] of [...theirs, 'Lead Generated'].entries()) {
    const tried = await trials.run(id, { ...account[id], event: { event: name, properties } });
    expect([name, tried.errors]).toEqual([name, []]);
    expect(trials.heard.map(({ body }) => nameOf(body))).toEqual(names[index] ? [names[index]] : []);
  }
  await trials.run(id, { ...account[id], event: { event: 'other', properties } });
  expect(trials.heard).toEqual([]);
});

test.each([
  ['template-snapchat-ads', 'Snapchat'],
  ['template-reddit-conversions-api', 'Reddit'],
])('%s says that a mapping is missing', async (id, service) => {
  const tried = await trials.run(id, { ...account[id], event, mappings: false });
  expect(tried.errors.join()).toContain(`No mapping says what this event is called at ${service}.`);
  expect(trials.heard).toEqual([]);
});

test('Snapchat only checks conversions if it is told to', async () => {
  const { inputs, ...rest } = account['template-snapchat-ads'] as { inputs: object };
  await trials.run('template-snapchat-ads', {
    ...rest,
    event: ordered,
    inputs: { ...inputs, testEventMode: true },
  });
  expect(trials.heard[0]?.url).toBe(`https://tr.snapchat.com/v3/1/events/validate?access_token=${SECRET}`);
});

test('Reddit gets names of its own as custom events', async () => {
  const id = 'template-reddit-conversions-api';
  const inputs = { ...(account[id] as { inputs: object }).inputs, testMode: true };
  await trials.run(id, { inputs, event: ordered, mappings: { eventType: 'Refund' } });
  expect(trials.heard[0]?.body).toMatchObject({
    test_mode: true,
    events: [{ event_type: { tracking_type: 'Custom', custom_event_name: 'Refund' } }],
  });
});
