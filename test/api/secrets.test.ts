import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { requireDestination } from '../../destinations/registry.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { secretKeys } from '../../values/marked-secrets.ts';
import { firstTypes } from '../destinations/subject.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { insertExportOf } from '../support/batch-export-rows.ts';
import { eventually } from '../support/eventually.ts';
import { fill, idsOf, operations } from '../support/routes.ts';

const KEYRING_CANARY = 'canarycanarycanarycanarycanarycanarycanaryA';
const api = apiForFile({
  SLUICE_ENCRYPTION_KEYS: `k1:${KEYRING_CANARY}`,
  SLUICE_EGRESS_ALLOW: '127.0.0.1',
});
let anna: Tenant;
/** An export to each destination that has secrets, and one to nowhere. */
let exportIds: string[];
/** A server of every kind that answers each request with what it was sent, as careless servers do. */
const echo = createServer((request, response) => {
  const pieces: Buffer[] = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    response.writeHead(400, { 'content-type': 'application/xml' });
    const said = `${request.headers.authorization} ${Buffer.concat(pieces)}`;
    response.end(`<Error><Code>InvalidRequest</Code><Message>${said}</Message></Error>`);
  });
});

/** The text of every secret of a destination begins with this. */
const SECRET_CANARY = 'SecretCanary';

/** The key file of an account, whose private key has the text of secrets behind it. */
function keyFile(token_uri: string): object {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const private_key = `${privateKey.export({ type: 'pkcs8', format: 'pem' })}${SECRET_CANARY}\n`;
  return { type: 'service_account', client_email: 'lake@example.test', private_key, token_uri };
}

function destinationsWithSecrets(port: number) {
  const host = '127.0.0.1';
  const secrets = (...names: string[]) =>
    Object.fromEntries(names.map((name) => [name, `${SECRET_CANARY}-${name}`]));
  return [
    {
      type: 'S3',
      config: {
        ...{ bucket_name: 'lake', region: 'us-east-1', prefix: 'a', endpoint_url: `http://${host}:${port}` },
        ...secrets('aws_access_key_id', 'aws_secret_access_key'),
      },
    },
    {
      type: 'AzureBlob',
      config: {
        ...{ container_name: 'lake', account_name: 'sea', endpoint_url: `http://${host}:${port}/sea` },
        ...secrets('account_key'),
      },
    },
    {
      type: 'GoogleCloudStorage',
      config: {
        ...{ bucket_name: 'lake', endpoint_url: `http://${host}:${port}` },
        ...{ hmac_access_key: `${SECRET_CANARY}Access`, ...secrets('hmac_secret') },
      },
    },
    {
      type: 'GoogleCloudStorage',
      config: { bucket_name: 'pool', service_account_key: keyFile(`http://${host}:${port}/token`) },
    },
    {
      type: 'Postgres',
      config: { host, port, database: 'lake', has_self_signed_cert: true, ...secrets('user', 'password') },
    },
    { type: 'HTTP', config: { url: `http://${host}:${port}/batch/`, ...secrets('token') } },
  ];
}

beforeAll(async () => {
  await api.schedules.ensure();
  anna = await api.createTenant('Anna');
  await insertExportOf(api.pool, anna);
  await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
  exportIds = [String(idsOf(anna).id)];
  for (const destination of destinationsWithSecrets((echo.address() as AddressInfo).port)) {
    const body = { name: destination.type, interval: 'hour', paused: true, destination };
    const url = `/api/projects/${anna.projectId}/batch_exports/`;
    // Where the machine is busy, the API asks to come back.
    const answer = await eventually(async () => {
      const one = await api.request(anna, 'POST', url, body);
      return ![429, 503].includes(one.statusCode) && one;
    });
    expect([answer.statusCode, answer.body.includes(SECRET_CANARY)]).toEqual([201, false]);
    exportIds.push(answer.json<{ id: string }>().id);
  }
});
afterAll(() => {
  echo.closeAllConnections();
  echo.close();
});

test('the list above has every destination with secrets', () => {
  const listed = new Set(destinationsWithSecrets(1).map(({ type }) => type));
  const expected = firstTypes().filter((type) => secretKeys(requireDestination(type).fields).length > 0);
  expect([...listed].sort()).toEqual(expected.sort());
});

const MOST_TRIES = 3;

/** One request of every kind to every route, good and bad. */
async function walk(app = api.app): Promise<{ where: string; text: string; status: number }[]> {
  const seen: { where: string; text: string; status: number }[] = [];
  const ask = async (method: string, url: string, key: string, payload?: unknown) => {
    let text = '';
    let status = 503;
    // On a busy machine Temporal may not answer in time, and says so. Whoever gets a 503 asks again.
    for (let tries = 0; status === 503 && tries < MOST_TRIES; tries += 1) {
      const answer = await app.inject({
        method: method as 'GET',
        url,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(payload === undefined ? {} : { payload: JSON.stringify(payload) }),
      });
      text += `${JSON.stringify(answer.headers)} ${answer.body}`;
      status = answer.statusCode;
    }
    seen.push({ where: `${method} ${url}`, text, status });
  };
  const good: Record<string, unknown> = {
    name: 'Walk',
    first_name: 'Walk',
    label: 'Walk',
    // Fewer would end the walk, once they are those of the key that asks.
    scopes: ['*'],
    // Nobody is there to verify anything.
    wait_seconds: 1,
  };
  const list = operations(app).filter((one) => !one.isStream);
  // Deletions last, or there would be nothing to walk through.
  for (const one of [
    ...list.filter((o) => o.method !== 'DELETE'),
    ...list.filter((o) => o.method === 'DELETE'),
  ]) {
    const ofExports = one.path.includes('/batch_exports/{id}/');
    // The other exports have the same routes, and secrets.
    for (const id of ofExports ? exportIds.slice(1) : []) {
      const body = one.method === 'GET' ? undefined : { ...good, step: 0 };
      if (one.method !== 'DELETE')
        await ask(one.method, fill(one.path, { ...idsOf(anna), id }), anna.key, body);
    }
    const url = fill(one.path, idsOf(anna));
    // Rolling the key that asks would end the walk.
    if (url.includes('/roll/')) continue;
    await ask(one.method, url, 'phx_0123456789abcdefghijklmnop', good);
    await ask(
      one.method,
      fill(one.path, { ...idsOf(anna), organization_id: 'x', project_id: 'x' }),
      anna.key,
      good,
    );
    if (one.method !== 'DELETE')
      await ask(one.method, url, anna.key, one.method === 'GET' ? undefined : good);
    await ask(one.method, `${url}?personal_api_key=${anna.key}&limit=1`, 'phx_0123456789abcdefghijklmnop', {
      name: 5,
    });
  }
  return seen;
}

describe('no answer of any route', () => {
  test('has the hash or the value of a key, a key of the keyring, a secret of a destination, an address of the database', async () => {
    const { rows } = await api.pool.query('select secure_value from personal_api_keys');
    const answers = await walk();
    expect(answers.filter((one) => one.status >= 500)).toEqual([]);
    expect(answers.filter((one) => one.status < 300).length).toBeGreaterThan(15);
    const canaries = [
      ...rows.map((row) => row.secure_value),
      anna.key,
      KEYRING_CANARY,
      SECRET_CANARY,
      'secure_value',
      api.config.DATABASE_URL as string,
      'postgres://',
      'node_modules',
    ];
    for (const { where, text } of answers) {
      for (const canary of canaries) expect([where, text.includes(canary) && canary]).toEqual([where, false]);
    }
  });

  test('nor has the log of all of it, with the level at its lowest, and with the database gone', async () => {
    const lines: string[] = [];
    const stream = new Writable({
      write(chunk, _encoding, done) {
        lines.push(String(chunk));
        done();
      },
    });
    const app = await api.rebuild({
      pool: brokenPool(`connect failed: postgres://sluice:hunter2@db/x for ${anna.key}`),
      logger: createLogger({ name: 'test', level: 'trace' }, stream),
    });
    await app.ready();
    const answers = await walk(app);
    await app.close();
    expect(answers.filter((one) => one.status === 500).length).toBeGreaterThan(20);
    const log = lines.join('');
    expect(lines.length).toBeGreaterThan(20);
    expect(log).toContain('request failed');
    for (const text of [log, ...answers.map((one) => one.text)]) {
      for (const canary of [anna.key, anna.key.slice(4), 'hunter2', KEYRING_CANARY, SECRET_CANARY]) {
        expect(text.includes(canary)).toBe(false);
      }
    }
    for (const { text, status } of answers) {
      if (status === 500) {
        expect(text).toContain(
          '{"type":"server_error","code":"error","detail":"A server error occurred.","attr":null}',
        );
      }
    }
  });
});

/** A pool on which every query fails with this message. */
function brokenPool(message: string): typeof api.pool {
  const fail = async () => {
    throw new Error(message);
  };
  return { query: fail, connect: fail } as unknown as typeof api.pool;
}
