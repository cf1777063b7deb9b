import { Writable } from 'node:stream';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { buildApp } from '../../api/app.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { insertExportOf } from '../support/batch-export-rows.ts';
import { fill, idsOf, operations } from '../support/routes.ts';

const KEYRING_CANARY = 'canarycanarycanarycanarycanarycanarycanaryA';
const api = apiForFile({ SLUICE_ENCRYPTION_KEYS: `k1:${KEYRING_CANARY}` });
let anna: Tenant;
beforeAll(async () => {
  await api.schedules.ensure();
  anna = await api.createTenant('Anna');
  await insertExportOf(api.pool, anna);
});

/** One request of every kind to every route, good and bad. */
async function walk(app = api.app): Promise<{ where: string; text: string; status: number }[]> {
  const seen: { where: string; text: string; status: number }[] = [];
  const ask = async (method: string, url: string, key: string, payload?: unknown) => {
    const answer = await app.inject({
      method: method as 'GET',
      url,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(payload === undefined ? {} : { payload: JSON.stringify(payload) }),
    });
    seen.push({
      where: `${method} ${url}`,
      text: `${JSON.stringify(answer.headers)} ${answer.body}`,
      status: answer.statusCode,
    });
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
  const list = operations(app);
  // Deletions last, or there would be nothing to walk through.
  for (const one of [
    ...list.filter((o) => o.method !== 'DELETE'),
    ...list.filter((o) => o.method === 'DELETE'),
  ]) {
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
  test('has the hash or the value of a key, a key of the keyring, an address of the database', async () => {
    const { rows } = await api.pool.query('select secure_value from personal_api_keys');
    const answers = await walk();
    expect(answers.filter((one) => one.status >= 500)).toEqual([]);
    expect(answers.filter((one) => one.status < 300).length).toBeGreaterThan(15);
    const canaries = [
      ...rows.map((row) => row.secure_value),
      anna.key,
      KEYRING_CANARY,
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
    const app = await buildApp({
      products: api.products,
      config: api.config,
      pool: brokenPool(`connect failed: postgres://sluice:hunter2@db/x for ${anna.key}`),
      listener: api.listener,
      ingest: api.ingest,
      schedules: api.schedules,
      compiler: api.compiler,
      egress: api.egress,
      keyring: api.keyring,
      logger: createLogger({ name: 'test', level: 'trace' }, stream),
      registry: createRegistry('test'),
      isPrepared: () => true,
      isDraining: () => false,
    });
    await app.ready();
    const answers = await walk(app);
    await app.close();
    expect(answers.filter((one) => one.status === 500).length).toBeGreaterThan(20);
    const log = lines.join('');
    expect(lines.length).toBeGreaterThan(20);
    expect(log).toContain('request failed');
    for (const text of [log, ...answers.map((one) => one.text)]) {
      for (const canary of [anna.key, anna.key.slice(4), 'hunter2', KEYRING_CANARY]) {
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
