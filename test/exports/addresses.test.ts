import { mkdtempSync, rmSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { listActivity } from '../../db/activity-log.ts';
import { createEgress } from '../../egress/egress.ts';
import { testDestination, testExportDestination } from '../../exports/commands/test-destination.ts';
import { findBatchExportById } from '../../exports/rows/batch-exports.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { refusals } from '../support/refusals.ts';

// Secrets follow their address: who changes where they travel must know them.

const root = mkdtempSync(path.join(tmpdir(), 'sluice-test-addresses-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const api = apiForFile({ SLUICE_EGRESS_ALLOW: '127.0.0.1,localhost', SLUICE_EXPORT_ROOT: root });
let anna: Tenant;
let exports = '';
/** Where a thief listens: nobody ever connects to it. */
let thief: net.Server;
let port = 0;
let stolen = 0;
const sockets = new Set<net.Socket>();

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  exports = `/api/projects/${anna.projectId}/batch_exports/`;
  thief = net.createServer((socket) => {
    stolen += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => thief.listen(0, '127.0.0.1', resolve));
  port = (thief.address() as AddressInfo).port;
});
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  stolen = 0;
});
afterAll(() => new Promise((resolve) => thief.close(resolve)));

const ask = async (method: string, url: string, body?: object) => {
  const answer = await api.request(anna, method, url, body);
  return { status: answer.statusCode, body: answer.body === '' ? null : answer.json() };
};

const PLACES: Record<string, Record<string, unknown>> = {
  Postgres: {
    ...{ host: 'DB.example', database: 'lake', table_name: 'events' },
    ...{ user: 'canary-user', password: 'canary-password' },
  },
  HTTP: { url: 'https://Sluice.example:443/batch/', token: 'phc_canary' },
  S3: {
    ...{ bucket_name: 'lake', region: 'us-east-1', prefix: 'p', endpoint_url: 'http://Minio.example:9000' },
    ...{ aws_access_key_id: 'canary-id', aws_secret_access_key: 'canary-secret' },
  },
  Virtual: {
    ...{ bucket_name: 'lake', region: 'us-east-1', prefix: 'p', endpoint_url: 'http://minio.example:9000' },
    ...{ aws_access_key_id: 'canary-id', aws_secret_access_key: 'canary-secret' },
    use_virtual_style_addressing: true,
  },
  AWS: {
    ...{ bucket_name: 'lake', region: 'us-east-1', prefix: 'p' },
    ...{ aws_access_key_id: 'canary-id', aws_secret_access_key: 'canary-secret' },
  },
};
const typeOf = (place: string) => (place in { Postgres: 1, HTTP: 1 } ? place : 'S3');
const secretsOf = (place: string) =>
  Object.fromEntries(
    Object.entries(PLACES[place] as object).filter(([, value]) => String(value).includes('canary')),
  );

const shownOf = (place: string) =>
  Object.fromEntries(
    Object.entries(PLACES[place] as object).filter(([, value]) => !String(value).includes('canary')),
  );

async function create(place: string): Promise<string> {
  const destination = { type: typeOf(place), config: PLACES[place] };
  const { status, body } = await ask('POST', exports, {
    ...{ name: `${place} ${Math.random()}`, interval: 'hour', destination },
    model: 'events',
  });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body.id;
}

async function withExport<T>(place: string, work: (id: string) => Promise<T>): Promise<T> {
  const id = await create(place);
  try {
    return await work(id);
  } finally {
    await ask('DELETE', `${exports}${id}/`);
  }
}

/** Every way to have stored secrets used with another configuration. */
const ways = ['PATCH', 'PUT', 'test', 'test of the organization'] as const;
const change = (way: (typeof ways)[number], id: string, type: string, config: object) => {
  const destination = { type, config };
  if (way === 'PATCH') return ask('PATCH', `${exports}${id}/`, { destination: { config } });
  if (way === 'PUT') return ask('PUT', `${exports}${id}/`, { name: 'Lake', interval: 'hour', destination });
  const prefix = way === 'test' ? exports : '/api/organizations/@current/batch_exports/';
  return ask('POST', `${prefix}${id}/run_test_step/`, { destination, step: 0 });
};

const moves: [place: string, changed: string, config: () => Record<string, unknown>][] = [
  ['Postgres', 'host', () => ({ host: '127.0.0.1' })],
  ['Postgres', 'port', () => ({ port: 5433 })],
  ['Postgres', 'has_self_signed_cert', () => ({ has_self_signed_cert: 'true' })],
  [
    'Postgres',
    "host', 'port', 'has_self_signed_cert",
    () => ({ host: '127.0.0.1', port, has_self_signed_cert: true }),
  ],
  ['HTTP', 'url', () => ({ url: `http://127.0.0.1:${port}/batch/` })],
  ['HTTP', 'url', () => ({ url: 'https://sluice.example/of-somebody-else/batch/' })],
  ['HTTP', 'url', () => ({ url: 'http://sluice.example/batch/' })],
  ['S3', 'endpoint_url', () => ({ endpoint_url: `http://127.0.0.1:${port}` })],
  ['S3', "endpoint_url', 'use_virtual_style_addressing', 'region", () => ({ endpoint_url: null })],
  ['S3', "use_virtual_style_addressing', 'bucket_name", () => ({ use_virtual_style_addressing: true })],
  ['Virtual', 'bucket_name', () => ({ bucket_name: 'of-somebody-else' })],
  ['AWS', 'region', () => ({ region: 'cn-north-1' })],
  [
    'AWS',
    "endpoint_url', 'region', 'use_virtual_style_addressing",
    () => ({ endpoint_url: 'https://evil.example' }),
  ],
];

test.each(moves)('%s: another %s needs the secrets, all of them', async (place, changed, config) => {
  const secrets = secretsOf(place);
  const names = Object.keys(secrets);
  const refused = (missing: string[]) => ({
    status: 400,
    body: refusals.field(
      `destination__config__${missing[0]}`,
      'invalid_input',
      `Configuration missing required secrets: [${missing.map((one) => `'${one}'`).join(', ')}]. A change of ['${changed}'] changes where Sluice sends them, so send them along.`,
    ),
  });
  await withExport(place, async (id) => {
    for (const way of ways) {
      const bare = { ...(way === 'PUT' ? shownOf(place) : {}), ...config() };
      expect(await change(way, id, typeOf(place), bare)).toEqual(refused(names));
      if (names.length === 1) continue;
      const some = { ...bare, [names[0] as string]: secrets[names[0] as string] };
      expect(await change(way, id, typeOf(place), some)).toEqual(refused(names.slice(1)));
    }
    expect(stolen).toBe(0);
    const stored = async () => (await ask('GET', `${exports}${id}/`)).body.destination.config;
    expect(await stored()).toEqual(shownOf(place));
    expect((await change('PATCH', id, typeOf(place), { ...config(), ...secrets })).status).toBe(200);
    expect(await stored()).not.toEqual(shownOf(place));
  });
});

test.each<[place: string, same: Record<string, unknown>]>([
  ['Postgres', { host: ' db.EXAMPLE ', port: '5432', has_self_signed_cert: 'false', table_name: 'other' }],
  ['HTTP', { url: ' https://sluice.example/batch/ ', include_events: ['a'] }],
  [
    'S3',
    { endpoint_url: 'http://minio.EXAMPLE:9000/', region: 'eu-west-1', bucket_name: 'other', prefix: 'q' },
  ],
  [
    'AWS',
    { endpoint_url: '', bucket_name: 'other', use_virtual_style_addressing: false, compression: 'gzip' },
  ],
])('%s: the same address, however it is written, asks for nothing', async (place, same) => {
  await withExport(place, async (id) => {
    expect(await change('PATCH', id, typeOf(place), same)).toMatchObject({ status: 200 });
    expect(await change('PATCH', id, typeOf(place), {})).toMatchObject({ status: 200 });
  });
});

test('a secret alone can be replaced, and taken away', async () => {
  await withExport('S3', async (id) => {
    const none = { aws_access_key_id: null, aws_secret_access_key: null };
    expect(await change('PATCH', id, 'S3', { aws_secret_access_key: 'canary-other' })).toMatchObject({
      status: 200,
    });
    expect(await change('PATCH', id, 'S3', { ...none, endpoint_url: 'http://other.example' })).toMatchObject({
      status: 200,
    });
    // There is nothing left that could be sent elsewhere.
    expect(await change('PATCH', id, 'S3', { endpoint_url: 'http://third.example' })).toMatchObject({
      status: 200,
    });
  });
});

describe('the activity log', () => {
  const tests = async () => {
    const { rows } = await listActivity(api.pool, { projectId: anna.projectId }, { limit: 50, offset: 0 });
    return rows.filter((row) => row.activity === 'tested');
  };

  test('says who tested which export with which address, and no secret', async () => {
    await withExport('Postgres', async (id) => {
      const config = { host: '127.0.0.1', port: 1, user: 'canary-new', password: 'canary-new' };
      expect((await change('test', id, 'Postgres', config)).body.result.status).toBe('Failed');
      const [entry] = await tests();
      expect(entry).toMatchObject({
        ...{ scope: 'BatchExport', item_id: id, actor: 'user', user_id: anna.userId },
        personal_api_key_id: anna.keyId,
        detail: {
          destination: 'Postgres',
          step: 'Connect to PostgreSQL',
          address: { host: '127.0.0.1', port: 1, has_self_signed_cert: false },
        },
      });
      expect(JSON.stringify(entry)).not.toContain('canary');
    });
  });

  test('has the tests of new destinations too, of a project and of an organization', async () => {
    const destination = { type: 'HTTP', config: { url: 'http://127.0.0.1:1/batch/', token: 'phc_canary' } };
    await ask('POST', `${exports}run_test_step_new/`, { destination });
    const [entry] = await tests();
    expect(entry).toMatchObject({ item_id: '', detail: { address: { url: 'http://127.0.0.1:1/batch/' } } });
    await ask('POST', '/api/organizations/@current/batch_exports/run_test_step_new/', { destination });
    const place = { organizationId: anna.organizationId };
    const { rows } = await listActivity(api.pool, place, { limit: 1, offset: 0 });
    expect(rows[0]).toMatchObject({ activity: 'tested', project_id: null });
    expect(JSON.stringify([entry, rows])).not.toContain('canary');
  });

  test('has no entry of what was not tested', async () => {
    const before = (await tests()).length;
    const url = 'http://user:canary-password@127.0.0.1:1/';
    const destination = { type: 'HTTP', config: { url, token: 'phc_canary' } };
    const { body } = await ask('POST', `${exports}run_test_step_new/`, { destination });
    expect(body.result.message).toContain('it contains a user name or password');
    expect(await tests()).toHaveLength(before);
  });
});

test('a test against a silent server ends, holds no connection to the database, and is in the log meanwhile', async () => {
  const egress = createEgress({ allow: '127.0.0.1' });
  const deps = {
    ...{ pool: api.pool, egress, exportRoot: '/nowhere', keyring: api.keyring },
    limits: { answer: 1_000 },
  };
  const actor = { kind: 'operator' } as const;
  const inUse = () => api.pool.totalCount - api.pool.idleCount;
  const config = {
    ...PLACES.S3,
    endpoint_url: `http://127.0.0.1:${port}`,
  };
  const connected = () => new Promise<void>((resolve) => thief.once('connection', () => resolve()));
  await withExport('S3', async (id) => {
    const row = await findBatchExportById(api.pool, id);
    if (!row) throw new Error(id);
    for (const step of [0, 1]) {
      for (const work of [
        () => testExportDestination(deps, actor, row, { config }, { step }),
        () => testDestination(deps, actor, anna, { type: 'S3', config }, { step }),
      ]) {
        const begun = connected();
        const result = work();
        await begun;
        expect(inUse()).toBe(0);
        const { rows } = await listActivity(api.pool, { projectId: anna.projectId }, { limit: 1, offset: 0 });
        expect(rows[0]).toMatchObject({ activity: 'tested', actor: 'operator' });
        expect((await result).result).toEqual({
          status: 'Failed',
          message: expect.stringContaining(`no answer from 127.0.0.1:${port} within 1 second`),
        });
      }
    }
  });
  await egress.close();
});

test('a test whose client has gone stops', async () => {
  const egress = createEgress({ allow: '127.0.0.1' });
  const gone = new AbortController();
  thief.once('connection', () => gone.abort(new Error('gone')));
  const config = { ...PLACES.S3, endpoint_url: `http://127.0.0.1:${port}` };
  const deps = { pool: api.pool, egress, exportRoot: '/nowhere' };
  const wanted = { step: 0, signal: gone.signal };
  const step = await testDestination(deps, { kind: 'operator' }, anna, { type: 'S3', config }, wanted);
  expect(step.result?.message).toMatch(/nobody waits for its result/);
  await egress.close();
});

test('a test of files says on whose disk it wrote', async () => {
  const destination = { type: 'File', config: { directory: 'probe' } };
  const { body } = await ask('POST', `${exports}run_test_step_new/`, { destination });
  expect(body.result).toEqual({
    status: 'Passed',
    message:
      'Wrote and deleted a file on the disk of the API server. Runs write on the disk of their worker: SLUICE_EXPORT_ROOT must be the same directory for both.',
  });
});
