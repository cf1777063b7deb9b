import { createHash, createHmac, generateKeyPairSync } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { signatureFor, signingOf } from '../../functions/signing.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { reservePort } from '../support/ports.ts';

const api = apiForFile({ SLUICE_EGRESS_ALLOW: '127.0.0.1' });
let anna: Tenant;
let server: Server;
let port: number;
const arrived: { method: string; url: string; headers: IncomingHttpHeaders; body: string }[] = [];

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  port = await reservePort();
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      arrived.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body });
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ heard: request.headers }));
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const hmac = (key: Buffer | string, text: string) => createHmac('sha256', key).update(text).digest();
const hex = (text: string) => createHash('sha256').update(text).digest('hex');

/** The signature that AWS computes for a request. Written from its description, without the library of the product. */
function awsSignature(
  secret: string,
  service: string,
  { method, url, headers, body }: { method: string; url: string; headers: IncomingHttpHeaders; body: string },
): string {
  const header = (name: string) => String(headers[name]);
  const [, scope = '', names = ''] =
    /Credential=[^/]+\/([^,]+), SignedHeaders=([^,]+)/.exec(header('authorization')) ?? [];
  const [date = '', region = ''] = scope.split('/');
  const [path = '', query = ''] = url.split('?');
  const canonical = [
    method,
    path || '/',
    query.split('&').toSorted().join('&'),
    ...names.split(';').map((name) => `${name}:${header(name).trim().replaceAll(/\s+/g, ' ')}`),
    '',
    names,
    hex(body),
  ].join('\n');
  const text = ['AWS4-HMAC-SHA256', header('x-amz-date'), scope, hex(canonical)].join('\n');
  const key = [region, service, 'aws4_request'].reduce(
    (one, part) => hmac(one, part),
    hmac(`AWS4${secret}`, date),
  );
  return hmac(key, text).toString('hex');
}

test('the verifier of these tests agrees with an example that AWS published', () => {
  const secret = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
  const headers = {
    ...{ host: 'example.amazonaws.com', 'x-amz-date': '20150830T123600Z' },
    authorization:
      'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, ' +
      'SignedHeaders=host;x-amz-date, Signature=?',
  };
  expect(awsSignature(secret, 'service', { method: 'GET', url: '/', headers, body: '' })).toBe(
    '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  );
});

const KEY = Buffer.from(Array.from({ length: 32 }, (_, n) => 255 - n * 3));
const SECRET = `whsec_${KEY.toString('base64')}`;
const EVENT = { event: 'paid', distinct_id: 'ada', properties: { name: 'Zoë "quoted"' } };
const base = () => `/api/projects/${anna.projectId}/hog_functions/`;
const hook = (path = '') => `http://127.0.0.1:${port}/${path}`;

const tried = async (configuration: object, isMocked = false) => {
  const answer = await api.request(anna, 'POST', `${base()}new/invocations/`, {
    ...{ configuration, globals: { event: EVENT }, mock_async_functions: isMocked },
  });
  expect(answer.statusCode).toBe(200);
  return { body: answer.json(), text: answer.body };
};
const secretInput = (key: string) => ({ key, type: 'string', secret: true });

describe('Standard Webhooks', () => {
  const configuration = (options: string, secret: unknown = SECRET) => ({
    hog: `return fetch('${hook('hook')}', {'body': event, ${options}})`,
    inputs_schema: [secretInput('key')],
    inputs: { key: { value: secret } },
  });
  const signed = "'standard_webhooks': {'secret_input': 'key'}";

  test('sign the body that is sent, under a key of any bytes', async () => {
    const { body, text } = await tried(configuration(signed));
    expect(body.status).toBe('success');
    const { headers, body: sent } = arrived.at(-1) as (typeof arrived)[number];
    const id = headers['webhook-id'] as string;
    const at = headers['webhook-timestamp'] as string;
    expect(id).toMatch(/^msg_[0-9a-f]{32}$/);
    expect(Math.abs(Date.now() / 1_000 - Number(at))).toBeLessThan(300);
    expect(headers['webhook-signature']).toBe(`v1,${hmac(KEY, `${id}.${at}.${sent}`).toString('base64')}`);
    expect(body.invocations[0].fetches[0]).toMatchObject({ signed: 'standard_webhooks' });
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain(KEY.toString('base64'));
  });

  test('give each request an id of its own, and replace headers of the program', async () => {
    const hog = `for (let i := 0; i < 2; i := i + 1) {
  fetch('${hook()}', {'headers': {'Webhook-Id': 'mine', 'X-Other': 'o'}, 'body': 'b', ${signed}})
}`;
    await tried({ ...configuration(signed), hog });
    const [one, other] = arrived.slice(-2).map(({ headers }) => headers);
    expect(one?.['webhook-id']).toMatch(/^msg_/);
    expect(one?.['webhook-id']).not.toBe(other?.['webhook-id']);
    expect(one?.['x-other']).toBe('o');
  });

  test.each([
    ['a key that is not base64', configuration, 'no key!', /`key` is not a key in base64/],
    ['no value', configuration, '', /the input `key`, which signs the request, has no value/],
  ])('fail with %s, and nothing is sent', async (_what, make, secret, message) => {
    const count = arrived.length;
    for (const isMocked of [true, false]) {
      const { body } = await tried(make(signed, secret), isMocked);
      expect(body.status).toBe('error');
      expect(body.errors[0]).toMatch(message);
    }
    expect(arrived.length).toBe(count);
  });

  test.each([
    ["'standard_webhooks': 'key'", /`standard_webhooks` must be an object/],
    ["'standard_webhooks': {}", /`standard_webhooks` needs `secret_input`/],
    ["'standard_webhooks': {'secret_input': 'other'}", /the input `other`/],
    [`${signed}, 'aws_sigv4': {}`, /one signature/],
    ["'aws_sigv4': {'service': 's3'}", /`aws_sigv4` needs `access_key_id_input`/],
  ])('and AWS are refused with wrong options: %s', async (options, message) => {
    const { body } = await tried(configuration(options));
    expect(body.errors[0]).toMatch(message);
  });

  test('are what the template of webhooks uses if it has a key', async () => {
    const { body } = await tried({
      template_id: 'template-webhook',
      inputs: {
        ...{
          url: { value: hook('template') },
          method: { value: 'POST' },
          body: { value: { a: '{event.event}' } },
        },
        ...{ headers: { value: { 'Content-Type': 'application/json' } }, signing_secret: { value: SECRET } },
      },
    });
    expect(body.status).toBe('success');
    const { headers, body: sent } = arrived.at(-1) as (typeof arrived)[number];
    const content = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${sent}`;
    expect(headers['webhook-signature']).toBe(`v1,${hmac(KEY, content).toString('base64')}`);
  });
});

describe('signatures for AWS', () => {
  const ID = 'AKIDEXAMPLE0000001';
  const AWS_SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
  const configuration = (target: string, more = '') => ({
    hog: `return fetch('${target}', {
  'headers': {'Content-Type': 'application/x-amz-json-1.1', 'X-Amz-Target': 'Kinesis_20131202.PutRecord', 'Authorization': 'mine'},
  'body': {'Data': base64Encode(event.properties.name)},
  'aws_sigv4': {'service': 'kinesis', 'region': 'eu-central-1', 'access_key_id_input': 'id', 'secret_access_key_input': 'secret'}${more}
})`,
    inputs_schema: [secretInput('id'), secretInput('secret')],
    inputs: { id: { value: ID }, secret: { value: AWS_SECRET } },
  });

  test.each(['', 'path/to%20it', 'path?b=2&a=1&a=0'])(
    'hold for the request that arrives: /%s',
    async (path) => {
      const { body, text } = await tried(configuration(hook(path)));
      expect(body.status).toBe('success');
      const request = arrived.at(-1) as (typeof arrived)[number];
      const authorization = request.headers.authorization as string;
      expect(authorization).toContain(`Credential=${ID}/`);
      expect(authorization).toContain('/eu-central-1/kinesis/aws4_request');
      // The path is encoded twice in what is signed, as all services but S3 want it.
      const url = request.url.replace('%20', '%2520');
      expect(authorization).toContain(
        `Signature=${awsSignature(AWS_SECRET, 'kinesis', { ...request, url })}`,
      );
      expect(request.headers['x-amz-target']).toBe('Kinesis_20131202.PutRecord');
      expect(body.invocations[0].fetches[0]).toMatchObject({ signed: 'aws_sigv4' });
      for (const secret of [ID, AWS_SECRET]) expect(text).not.toContain(secret);
    },
  );

  test('depend on the body', async () => {
    const signing = signingOf({
      aws_sigv4: { service: 's', region: 'r', access_key_id_input: 'id', secret_access_key_input: 'secret' },
    });
    const context = {
      input: (key: string) => key,
      awsKeys: () => {
        throw new Error('not asked for');
      },
    };
    const at = new Date('2026-01-01T00:00:00Z');
    const signature = async (body: string) => {
      const request = { url: 'https://s.r.amazonaws.com/', headers: {}, body };
      const headers = await signatureFor(
        signing as NonNullable<typeof signing>,
        'POST',
        request,
        context,
        at,
      );
      return headers.authorization;
    };
    expect(await signature('a')).toBe(await signature('a'));
    expect(await signature('a')).not.toBe(await signature('b'));
  });

  describe('with the keys of an integration', () => {
    const withIntegration = (id: number, target: string) => ({
      hog: `return fetch('${target}', {'body': 'b', 'aws_sigv4': {'service': 'sqs', 'integration_input': 'aws'}})`,
      inputs_schema: [{ key: 'aws', type: 'integration', integration: 'aws' }],
      inputs: { aws: { value: id } },
    });
    const integration = async (tenant: Tenant, kind: string, config: object): Promise<number> => {
      const answer = await api.request(tenant, 'POST', `/api/projects/${tenant.projectId}/integrations/`, {
        kind,
        config,
      });
      expect(answer.statusCode).toBe(201);
      return answer.json().id;
    };
    const keys = { region: 'eu-west-1', access_key_id: ID, secret_access_key: AWS_SECRET };

    test('are made only for hosts of AWS', async () => {
      const id = await integration(anna, 'aws', keys);
      const inside = await tried(withIntegration(id, 'https://sqs.eu-west-1.amazonaws.com/queue'), true);
      expect(inside.body.status).toBe('success');
      expect(inside.body.invocations[0].fetches[0]).toMatchObject({ signed: 'aws_sigv4', mocked: true });
      const count = arrived.length;
      for (const target of [
        hook(),
        'http://sqs.eu-west-1.amazonaws.com/',
        'https://amazonaws.com.example/',
      ]) {
        const { body, text } = await tried(withIntegration(id, target), true);
        expect(body.errors[0]).toMatch(/must not sign requests to/);
        expect(text).not.toContain(AWS_SECRET);
      }
      expect(arrived.length).toBe(count);
    });

    test('are not made for integrations of other projects, or of other kinds', async () => {
      const berta = await api.createTenant('Berta');
      const foreign = await integration(berta, 'aws', keys);
      const bearer = await integration(anna, 'bearer', { access_token: 't', hosts: ['sqs.example'] });
      for (const id of [foreign, bearer, 999_999]) {
        const { body } = await tried(withIntegration(id, 'https://sqs.eu-west-1.amazonaws.com/'), true);
        expect(body.errors[0]).toMatch(/has no keys for AWS/);
      }
    });
  });

  test('are what the template of Kinesis uses', async () => {
    const { body, text } = await tried(
      {
        template_id: 'template-aws-kinesis',
        inputs: {
          ...{ aws_access_key_id: { value: ID }, aws_secret_access_key: { value: AWS_SECRET } },
          ...{ aws_region: { value: 'eu-west-1' }, aws_kinesis_stream_name: { value: 'events' } },
          ...{
            aws_kinesis_partition_key: { value: '{event.distinct_id}' },
            payload: { value: { e: '{event.event}' } },
          },
        },
      },
      true,
    );
    expect(body.status).toBe('success');
    const [sent] = body.invocations[0].fetches;
    expect(sent).toMatchObject({ url: 'https://kinesis.eu-west-1.amazonaws.com', signed: 'aws_sigv4' });
    expect(sent.headers['X-Amz-Target']).toBe('Kinesis_20131202.PutRecord');
    expect(JSON.parse(sent.body)).toEqual({
      ...{ StreamName: 'events', PartitionKey: 'ada' },
      Data: Buffer.from('{"e":"paid"}').toString('base64'),
    });
    expect(text).not.toContain(AWS_SECRET);
  });
});

describe('a service account of Google', () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const key = {
    ...{ type: 'service_account', client_email: 'bot@x.iam.gserviceaccount.com', project_id: 'x' },
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  };
  const configuration = (id: number, target: string) => ({
    hog: `fetch('${target}', {'headers': {'Authorization': inputs.google.authorization}})`,
    inputs_schema: [{ key: 'google', type: 'integration', integration: 'google-service-account' }],
    inputs: { google: { value: id } },
  });

  test('is used only for hosts of Google, and no token is asked for while nothing is sent', async () => {
    const made = await api.request(anna, 'POST', `/api/projects/${anna.projectId}/integrations/`, {
      ...{ kind: 'google-service-account', config: { key, scope: 'https://www.googleapis.com/auth/pubsub' } },
    });
    expect(made.statusCode).toBe(201);
    const { id } = made.json();
    const inside = await tried(configuration(id, 'https://pubsub.googleapis.com/v1/x'), true);
    expect(inside.body.status).toBe('success');
    expect(inside.body.invocations[0].fetches[0].headers.Authorization).toMatch(/^secret_/);
    const outside = await tried(configuration(id, hook()), true);
    expect(outside.body.errors[0]).toMatch(/must not be sent to 127\.0\.0\.1/);
    expect(outside.text).not.toContain('PRIVATE KEY');
  });
});
