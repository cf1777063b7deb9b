import { generateKeyPairSync, verify } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createEgress } from '../../egress/egress.ts';
import { AccessTokens, type GoogleAccount } from '../../egress/google-tokens.ts';
import { reservePort } from '../support/ports.ts';

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;

let server: Server;
let account: GoogleAccount;
/** The statements that arrived. */
let statements: string[] = [];
let answer: { status: number; body: string };
let now = Date.parse('2026-05-01T00:00:00Z');

beforeAll(async () => {
  const port = await reservePort();
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const form = new URLSearchParams(body);
      expect([request.method, form.get('grant_type')]).toEqual([
        'POST',
        'urn:ietf:params:oauth:grant-type:jwt-bearer',
      ]);
      statements.push(form.get('assertion') ?? '');
      response.writeHead(answer.status, { 'content-type': 'application/json' });
      const said = answer.body.replace('<statement>', statements.at(-1) ?? '');
      response.end(said.replace('#', String(statements.length)));
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  account = {
    ...{ clientEmail: 'bot@x.iam.gserviceaccount.com', privateKey: pem },
    ...{
      tokenUrl: `http://127.0.0.1:${port}/token`,
      scope: 'https://www.googleapis.com/auth/cloud-platform',
    },
  };
});
afterAll(() => new Promise((resolve) => server.close(resolve)));
beforeEach(() => {
  statements = [];
  answer = { status: 200, body: '{"access_token":"token #","expires_in":3600,"token_type":"Bearer"}' };
});

const create = () => new AccessTokens(createEgress({ allow: '127.0.0.1' }), () => now);
const part = (statement: string, index: number) =>
  JSON.parse(Buffer.from(statement.split('.')[index] ?? '', 'base64url').toString());

describe('an access token', () => {
  test('is given for a statement that the key of the account has signed', async () => {
    expect(await create().tokenFor(account)).toBe('token 1');
    const [statement = ''] = statements;
    const [head, claims, signature = ''] = statement.split('.');
    expect(
      verify('RSA-SHA256', Buffer.from(`${head}.${claims}`), publicKey, Buffer.from(signature, 'base64url')),
    ).toBe(true);
    expect(part(statement, 0)).toEqual({ alg: 'RS256', typ: 'JWT' });
    expect(part(statement, 1)).toEqual({
      ...{ iss: account.clientEmail, scope: account.scope, aud: account.tokenUrl },
      ...{ iat: now / 1_000, exp: now / 1_000 + 3_600 },
    });
  });

  test('is kept until shortly before its end, and asked for once by many', async () => {
    const tokens = create();
    const all = await Promise.all(Array.from({ length: 20 }, () => tokens.tokenFor(account)));
    expect(new Set(all)).toEqual(new Set(['token 1']));
    now += 54 * 60_000;
    expect(await tokens.tokenFor(account)).toBe('token 1');
    now += 2 * 60_000;
    expect(await tokens.tokenFor(account)).toBe('token 2');
    expect(await tokens.tokenFor({ ...account, scope: 'other' })).toBe('token 3');
  });

  test.each([
    [
      400,
      '{"error":"invalid_grant","error_description":"Invalid JWT Signature."}',
      /400, Invalid JWT Signature\./,
    ],
    [500, '<html>', /500, an answer without a token/],
    [200, '{"token_type":"Bearer"}', /200, an answer without a token/],
  ])(
    'that is not given (%s) fails with the reason, and is asked for again',
    async (status, body, message) => {
      const tokens = create();
      answer = { status, body };
      await expect(tokens.tokenFor(account)).rejects.toThrow(message);
      answer = { status: 200, body: '{"access_token":"later"}' };
      expect(await tokens.tokenFor(account)).toBe('later');
    },
  );

  test('that is not given by a server that repeats the statement: the message does not', async () => {
    answer = { status: 400, body: '{"error":"no","error_description":"what is <statement>?"}' };
    await expect(create().tokenFor(account)).rejects.toThrow(/400, what is \*\*\*\?/);
    const refused = await create()
      .tokenFor(account)
      .catch((error: Error) => error);
    expect(refused).toMatchObject({ status: 400 });
  });

  test('is not asked for with a key that is none', async () => {
    const broken = {
      ...account,
      privateKey: '-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----',
    };
    await expect(create().tokenFor(broken)).rejects.toThrow(/private key of its key file cannot be used/);
    expect(statements).toEqual([]);
  });
});
