import { expect, test } from '@jest/globals';
import { trialsForFile } from './trial.ts';

const trials = trialsForFile();
const request = {
  ...{ method: 'POST', headers: { 'content-type': 'application/json' }, query: {}, ip: '81.2.69.142' },
  ...{
    body: { event: 'order paid', distinct_id: 'ada' },
    stringBody: '{"event":"order paid","distinct_id":"ada"}',
  },
};
const ask = (inputs: object, changed: object = {}) =>
  trials.receive('template-source-webhook', { ...inputs }, { ...request, ...changed });

test('a request becomes an event', async () => {
  const begun = await ask({});
  expect(begun).toMatchObject({ status: 'finished' });
  expect(begun.captured).toMatchObject([
    {
      ...{ event: 'order paid', distinct_id: 'ada' },
      properties: {
        ...{ $ip: '81.2.69.142', $lib: 'posthog-webhook' },
        $source_url: 'https://sluice.test/project/1/functions/f/configuration/',
      },
    },
  ]);
});

test('inputs say where the parts of an event are', async () => {
  const inputs = {
    event: 'sale',
    distinct_id: '{request.query.who}',
    properties: { amount: '{request.body.total}' },
  };
  const begun = await ask(inputs, { query: { who: 7 }, body: { total: 5 } });
  expect(begun.captured).toMatchObject([{ event: 'sale', distinct_id: '7', properties: { amount: 5 } }]);
});

const answer = (status: number, body: unknown) => ({
  result: { httpResponse: { status, body } },
  captured: [],
});

test.each([
  ['another method', {}, { method: 'GET' }, answer(405, 'Method not allowed')],
  [
    'a method that is not the one that is asked for',
    { method: 'PUT' },
    {},
    answer(405, 'Method not allowed'),
  ],
  ['no authorization', { auth_header: 'Bearer s3cret' }, {}, answer(401, 'Unauthorized')],
  [
    'another authorization',
    { auth_header: 'Bearer s3cret' },
    { headers: { authorization: 'Bearer other' } },
    answer(401, 'Unauthorized'),
  ],
  [
    'no event',
    {},
    { body: { distinct_id: 'ada' } },
    answer(400, { error: '"event" could not be parsed correctly' }),
  ],
  [
    'no distinct_id',
    {},
    { body: { event: 'x' } },
    answer(400, { error: '"distinct_id" could not be parsed correctly' }),
  ],
  ['no JSON', {}, { body: 'text' }, answer(400, { error: '"event" could not be parsed correctly' })],
])('refuses %s', async (_name, inputs, changed, expected) => {
  expect(await ask(inputs, changed)).toMatchObject(expected);
});

test('takes the authorization and the method that are asked for, and logs bodies', async () => {
  const inputs = { auth_header: 'Bearer s3cret', method: 'PUT', debug: true };
  const begun = await ask(inputs, { method: 'PUT', headers: { authorization: 'Bearer s3cret' } });
  expect(begun.captured.length).toBe(1);
  expect(begun.printed).toEqual([`Incoming request:, ${JSON.stringify(request.body)}`]);
});
