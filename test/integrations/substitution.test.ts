import { describe, expect, test } from '@jest/globals';
import {
  markerOf,
  type Substitution,
  SubstitutionError,
  secretValues,
  substitute,
} from '../../integrations/rules/substitution.ts';

const SECRET = 'tök"en&=/:%\n';
const USER = Buffer.from('anna:pässword').toString('base64');
const [TOKEN, HEADER, HOOK] = ['access_token', 'authorization', 'webhook_url'].map((name) =>
  markerOf('seed', 7, name),
) as [string, string, string];

const service: Substitution = {
  integrationId: 7,
  kind: 'bearer',
  hosts: ['api.example.com'],
  signing: null,
  placeholders: [
    { name: 'access_token', marker: TOKEN, value: SECRET, form: 'text' },
    { name: 'authorization', marker: HEADER, value: `Basic ${USER}`, form: 'text' },
  ],
};
const hook: Substitution = {
  integrationId: 8,
  kind: 'discord',
  hosts: ['discord.com'],
  signing: null,
  placeholders: [
    { name: 'webhook_url', marker: HOOK, value: 'https://discord.com/api/webhooks/1/abc', form: 'url' },
  ],
};
const URL_OK = 'https://api.example.com/v1';
const put = (request: { url?: string; headers?: Record<string, string>; body?: string | null }) =>
  substitute({ url: URL_OK, headers: {}, body: null, ...request }, [service, hook]);

const refusal = (request: Parameters<typeof put>[0]): string => {
  try {
    put(request);
  } catch (error) {
    expect(error).toBeInstanceOf(SubstitutionError);
    for (const value of [SECRET, USER, 'abc', encodeURIComponent(SECRET)]) {
      expect((error as Error).message).not.toContain(value);
    }
    return (error as Error).message;
  }
  throw new Error('nothing was refused');
};

describe('markers', () => {
  test('are the same for the same run, integration and name, and differ otherwise', () => {
    const all = [
      markerOf('seed', 7, 'a'),
      markerOf('seed', 7, 'b'),
      markerOf('seed', 8, 'a'),
      markerOf('other', 7, 'a'),
    ];
    expect(new Set(all).size).toBe(4);
    expect(markerOf('seed', 7, 'a')).toBe(all[0]);
  });

  test('have the same form in URLs, JSON and forms', () => {
    expect(TOKEN).toMatch(/^secret_[0-9a-f]{40}$/);
    expect([encodeURIComponent(TOKEN), JSON.stringify(TOKEN)]).toEqual([TOKEN, `"${TOKEN}"`]);
  });
});

describe('a secret is put', () => {
  test('into headers as it is', () => {
    const { headers } = put({ headers: { authorization: HEADER, 'X-Key': `key ${TOKEN}, ${TOKEN}` } });
    expect(headers).toEqual({ authorization: `Basic ${USER}`, 'X-Key': `key ${SECRET}, ${SECRET}` });
  });

  test('into the URL in percent encoding, with its colons', () => {
    expect(put({ url: `${URL_OK}/bot${TOKEN}/send?key=${TOKEN}` }).url).toBe(
      `https://api.example.com/v1/bott%C3%B6k%22en%26%3D%2F:%25%0A/send?key=t%C3%B6k%22en%26%3D%2F:%25%0A`,
    );
  });

  test.each([
    ['JSON', { 'Content-Type': 'application/json; charset=utf-8' }],
    ['JSON of a vendor', { 'content-type': 'application/vnd.api+json' }],
    ['what looks like JSON', {}],
  ])('into %s with its escapes', (_what, headers) => {
    const { body } = put({
      headers: headers as Record<string, string>,
      body: JSON.stringify({ a: [`x${TOKEN}`] }),
    });
    expect(JSON.parse(body as string)).toEqual({ a: [`x${SECRET}`] });
  });

  test('into a form in percent encoding, and into other texts as it is', () => {
    const form = put({
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `a=${TOKEN}&b=1`,
    });
    expect([...new URLSearchParams(form.body as string)]).toEqual([
      ['a', SECRET],
      ['b', '1'],
    ]);
    expect(put({ headers: { 'content-type': 'text/plain' }, body: `a ${TOKEN}` }).body).toBe(`a ${SECRET}`);
    expect(put({ body: `a ${TOKEN}` }).body).toBe(`a ${SECRET}`);
  });

  test('into the place of a URL that begins with it', () => {
    expect(put({ url: `${HOOK}?wait=true` }).url).toBe('https://discord.com/api/webhooks/1/abc?wait=true');
  });

  test('nowhere else: a request without placeholders stays as it is, wherever it goes', () => {
    const request = { url: 'http://elsewhere.example', headers: { a: 'secret_' }, body: '{"secret_0":1}' };
    expect(substitute(request, [service, hook])).toBe(request);
    expect(substitute(request, [])).toBe(request);
  });
});

describe('a request is refused', () => {
  const elsewhere = 'https://evil.example/v1';
  test.each<[string, Parameters<typeof put>[0]]>([
    ['with a secret in a header', { url: elsewhere, headers: { authorization: `Bearer ${TOKEN}` } }],
    ['with a ready header', { url: elsewhere, headers: { authorization: HEADER } }],
    ['with a secret in the URL', { url: `${elsewhere}?x=${TOKEN}` }],
    ['with a secret in the body', { url: elsewhere, body: `{"x":"${TOKEN}"}` }],
    ['with a secret before an @', { url: `https://${TOKEN}@evil.example/` }],
    ['with an allowed host before an @', { url: 'https://api.example.com@evil.example/', body: TOKEN }],
    ['with a URL as a part of another', { url: `https://evil.example/${HOOK}` }],
    ['with the secret of another integration', { url: URL_OK, body: HOOK }],
    ['without TLS', { url: 'http://api.example.com/', body: TOKEN }],
    ['to a part of an allowed host', { url: 'https://example.com/', body: TOKEN }],
  ])('%s that may not go to its host', (_what, request) => {
    expect(refusal(request)).toMatch(
      /^The secret `[a-z_]+` of the integration \d \(\w+\) must not be sent to /,
    );
  });

  test('with a sentence that names the host, the integration and what is allowed', () => {
    expect(refusal({ url: elsewhere, body: TOKEN })).toBe(
      'The secret `access_token` of the integration 7 (bearer) must not be sent to evil.example. It may be sent to ' +
        'api.example.com, with https.',
    );
  });

  test.each([`https://${TOKEN}.evil.example/`, `https://${TOKEN}/`, 'no url', `${TOKEN}://x`])(
    'with the host %s, which is not named',
    (url) => {
      expect(refusal({ url, body: TOKEN })).toContain(' must not be sent to this URL. ');
    },
  );

  test.each<[string, Parameters<typeof put>[0]]>([
    ['base64', { headers: { authorization: `Basic ${Buffer.from(`user:${TOKEN}`).toString('base64')}` } }],
    [
      'base64, shifted',
      { headers: { authorization: `Basic ${Buffer.from(`me:${TOKEN}:x`).toString('base64')}` } },
    ],
    ['base64, shifted further', { body: Buffer.from(`abcd:${TOKEN}`).toString('base64') }],
    ['base64 for URLs', { url: `${URL_OK}?x=${Buffer.from(`>>>${TOKEN}`).toString('base64url')}` }],
    [
      'base64 in percent encoding',
      { body: encodeURIComponent(Buffer.from(`>>>${TOKEN}`).toString('base64')) },
    ],
    ['hexadecimal', { body: Buffer.from(TOKEN).toString('hex').toUpperCase() }],
    ['percent', { url: `${elsewhere}?x=${TOKEN.replace('s', '%73')}` }],
    ['percent, beside the plain one', { url: `${URL_OK}?x=${TOKEN.replace('_', '%5F')}&y=${TOKEN}` }],
  ])('with a placeholder in %s encoding, wherever it goes', (_what, request) => {
    expect(refusal(request)).toMatch(/^The secret `access_token` .* is encoded in this request/);
  });

  test('with a placeholder in the name of a header', () => {
    expect(refusal({ headers: { [TOKEN]: 'x' } })).toMatch(/must not be a part of the name of a header\.$/);
  });
});

test('a secret that looks like a placeholder is not replaced again', () => {
  const tricky: Substitution = {
    ...service,
    placeholders: [
      { name: 'a', marker: TOKEN, value: HEADER, form: 'text' },
      { name: 'b', marker: HEADER, value: 'inner', form: 'text' },
    ],
  };
  expect(substitute({ url: URL_OK, headers: {}, body: `${TOKEN} ${HEADER}` }, [tricky]).body).toBe(
    `${HEADER} inner`,
  );
});

test('the values that no log may contain are all that could be put in, and what requests are signed with', () => {
  const signing = {
    scope: 's',
    scheme: 'google-jwt' as const,
    clientEmail: 'a@b',
    privateKey: 'pem',
    tokenUrl: 'https://x',
  };
  const aws = {
    ...{ scheme: 'aws-sigv4' as const, accessKeyId: 'id', secretAccessKey: 'key' },
    ...{ sessionToken: 'session', region: 'r' },
  };
  const none = { ...service, placeholders: [] };
  expect(secretValues([service, { ...none, signing }, { ...none, signing: aws }])).toEqual([
    ...[SECRET, `Basic ${USER}`, 'pem', 'id', 'key', 'session'],
  ]);
});
