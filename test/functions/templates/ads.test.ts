import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { checkService, SECRET, type ServiceCase } from './service.ts';
import { ADA, PAID, trialsForFile } from './trial.ts';

const trials = trialsForFile();
const json = { 'content-type': 'application/json' };
const sha = (text: string) => createHash('sha256').update(text).digest('hex');
const event = { properties: { ...PAID.properties, value: '5.5', $raw_user_agent: 'Firefox' } };
const seconds = Date.parse(PAID.timestamp) / 1000;

const CASES: ServiceCase[] = [
  {
    template: 'template-meta-ads',
    inputs: { accessToken: SECRET, pixelId: '123', eventName: 'Purchase', testEventCode: 'TEST1' },
    event,
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
              custom_data: { currency: 'EUR', value: 5.5 },
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
];

test.each(CASES)('$template speaks as its service documents', async (given) => {
  await checkService(trials, given);
});

test('values are normalized before they are hashed, and nothing empty is hashed', async () => {
  const inputs = { accessToken: SECRET, pixelId: '123' };
  const person = { id: 'p', properties: { email: ' Ada@Shop.TEST ', phone: '+49 (123) 45-6' } };
  await trials.run('template-meta-ads', { inputs, person });
  expect(trials.heard[0]?.body).toMatchObject({
    data: [{ event_name: 'order paid', user_data: { em: sha('ada@shop.test'), ph: sha('49123456') } }],
  });
  expect(trials.heard[0]?.body).not.toHaveProperty('data.0.user_data.fn');
  const nobody = await trials.run('template-meta-ads', { inputs, person: null });
  expect(nobody.errors).toEqual([]);
  expect(trials.heard[0]?.body).toHaveProperty('data.0.user_data', { client_ip_address: '81.2.69.142' });
});
