// A product of a few files, beside the real ones. What it is given here is what a new product needs, and nothing else:
// its manifest in the list of products, its routes in the list of routes, its commands in the list of commands.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { Runtime } from '@temporalio/worker';
import { z } from 'zod';
import { ROUTES } from '../../api/routes.ts';
import { readBackupManifest } from '../../backup/manifest.ts';
import { createPool, type Pool } from '../../db/pool.ts';
import { PRODUCTS } from '../../products.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { temporalLogger } from '../../worker/temporal-logger.ts';
import { type RunningWorker, startWorker } from '../../worker/worker.ts';
import type { MaintenanceReport } from '../../workflows/maintenance.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { sluice } from '../support/cli.ts';
import { asReader, withDatabase } from '../support/database.ts';
import { refusals } from '../support/refusals.ts';
import { documentOf, fill, idsOf, managed } from '../support/routes.ts';
import { SCRATCH } from './scratch/manifest.ts';
import { scratchNote, scratchRoutes } from './scratch/routes.ts';
import { SCRATCH_TABLES } from './scratch/rows.ts';

const products = [...PRODUCTS, SCRATCH];
const KEYS = `scratch-key:${Buffer.alloc(32, 3).toString('base64')}`;
const logger = createLogger({ name: 'test', level: 'silent' });
// Hooks run in the order of their definition: this one before the database goes.
afterAll(async () => {
  // Other files of this process describe the API without it.
  z.globalRegistry.remove(scratchNote);
  await worker?.stop();
  await client?.connection.close();
  rmSync(directory, { recursive: true, force: true });
});
const api = apiForFile(
  { SLUICE_ENCRYPTION_KEYS: KEYS, SLUICE_SHUTDOWN_SECONDS: '1' },
  { products },
  { ...ROUTES, management: [...ROUTES.management, scratchRoutes] },
);
const directory = mkdtempSync(path.join(tmpdir(), 'sluice-scratch-'));
let client: Client;
let worker: RunningWorker;
let anna: Tenant;

beforeAll(async () => {
  await api.pool.query(SCRATCH_TABLES);
  Runtime.install({ logger: temporalLogger(logger), shutdownSignals: [] });
  const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = api.config;
  client = new Client({ connection: await Connection.connect({ address: address as string }), namespace });
  worker = await startWorker({
    config: api.config,
    pool: api.pool,
    readerAddress: asReader(api.config.DATABASE_URL as string),
    schedules: api.schedules,
    logger,
    products,
  });
  anna = await api.createTenant('Anna');
});

const notesUrl = (projectId: number | string = '@current') => `/api/projects/${projectId}/scratch_notes/`;
const note = (tenant: Tenant, text: string, projectId?: number) =>
  api.request(tenant, 'POST', notesUrl(projectId), { text, secret: `secret of ${text}` });

async function textsOf(projectId: number, pool: Pool = api.pool): Promise<string[]> {
  const { rows } = await pool.query('select text from scratch_notes where project_id = $1 order by text', [
    projectId,
  ]);
  return rows.map((row) => row.text);
}

async function markedPersons(projectId: number): Promise<string[]> {
  const { rows } = await api.pool.query('select person_id from scratch_marks where project_id = $1', [
    projectId,
  ]);
  return rows.map((row) => row.person_id);
}

/** What the schedule does every minute, now. */
const maintain = (): Promise<MaintenanceReport> =>
  client.workflow.execute('maintenance', {
    taskQueue: api.config.SLUICE_TASK_QUEUE,
    workflowId: `maintenance-${randomUUID()}`,
  });

const run = (args: string[]) =>
  sluice(
    args,
    {
      DATABASE_URL: api.config.DATABASE_URL as string,
      SLUICE_ENCRYPTION_KEYS: KEYS,
      SLUICE_DATA_DIR: path.join(directory, 'data'),
      TEMPORAL_ADDRESS: api.config.TEMPORAL_ADDRESS as string,
      TEMPORAL_NAMESPACE: api.config.TEMPORAL_NAMESPACE,
    },
    'test/products/scratch/sluice.ts',
  );

describe('the API', () => {
  const own = () => managed(api.app).filter(({ path }) => path.includes('scratch_notes'));

  test('describes its routes, and offers its scopes for keys', () => {
    const { paths, components } = documentOf(api.app);
    expect(Object.keys(paths['/api/projects/{project_id}/scratch_notes/'] ?? {})).toEqual(['get', 'post']);
    expect(components.schemas).toHaveProperty('ScratchNote');
    expect(own().map(({ method, scope }) => [method, scope])).toEqual([
      ['GET', 'scratch_note:read'],
      ['POST', 'scratch_note:write'],
    ]);
    expect(JSON.stringify(paths['/api/personal_api_keys/'])).toContain('"scratch_note:write"');
  });

  test('gives its scope to a key, and asks for it', async () => {
    const newKey = (scopes: string[]) =>
      api.request(anna, 'POST', '/api/personal_api_keys/', { label: 'notes', scopes });
    const made = await newKey(['scratch_note:read']);
    expect(made.statusCode).toBe(201);
    const { value } = made.json();
    expect((await api.request(value, 'GET', notesUrl(anna.projectId))).statusCode).toBe(200);
    const refused = await api.request(value, 'POST', notesUrl(anna.projectId), { text: 'x' });
    expect([refused.statusCode, refused.json()]).toEqual([403, refusals.scope('scratch_note:write')]);
    expect((await newKey(['scratch_notes:read'])).statusCode).toBe(400);
  });

  test('refuses whoever shows no key, has no scope, or belongs elsewhere', async () => {
    const [stranger, narrow] = [
      await api.createTenant('Stranger'),
      await api.createKey(anna, { scopes: ['survey:read'] }),
    ];
    for (const { method, path, scope } of own()) {
      const url = fill(path, idsOf(anna));
      const answers = [null, narrow.value, stranger].map((caller) =>
        api.request(caller, method, url, { text: '' }),
      );
      const [none, scopeless, foreign] = (await Promise.all(answers)).map((one) => [
        one.statusCode,
        one.json(),
      ]);
      expect(none).toEqual([401, refusals.notAuthenticated]);
      expect(scopeless).toEqual([403, refusals.scope(scope as string)]);
      expect(foreign).toEqual([404, refusals.notFound('Project not found.')]);
    }
  });

  test('does not serve routes whose product is not listed', async () => {
    await expect(api.rebuild({ products: PRODUCTS })).rejects.toThrow(
      'GET /api/projects/:project_id/scratch_notes/ asks for the scope scratch_note:read, which is unknown',
    );
  });
});

test('environments_rollback moves its configuration', async () => {
  const tenant = await api.createTenant('Rollback');
  const target = (await api.request(tenant, 'POST', '/api/projects/', { name: 'target' })).json().id;
  await note(tenant, 'moves', tenant.projectId);
  const url = `/api/organizations/${tenant.organizationId}/environments_rollback/`;
  expect((await api.request(tenant, 'POST', url, { [tenant.projectId]: target })).statusCode).toBe(200);
  expect([await textsOf(tenant.projectId), await textsOf(target)]).toEqual([[], ['moves']]);
});

test('deleting a project deletes its configuration at once, and its data in the background', async () => {
  const [doomed, other] = [await api.createTenant('Doomed'), await api.createTenant('Other')];
  for (const tenant of [doomed, other]) {
    await note(tenant, 'stays');
    await api.pool.query('insert into scratch_marks values ($1, $2)', [tenant.projectId, randomUUID()]);
  }
  const deleted = await api.request(doomed, 'DELETE', `/api/projects/${doomed.projectId}/`);
  expect([deleted.statusCode, await textsOf(doomed.projectId)]).toEqual([204, []]);
  await maintain();
  expect(await markedPersons(doomed.projectId)).toEqual([]);
  expect([await textsOf(other.projectId), (await markedPersons(other.projectId)).length]).toEqual([
    ['stays'],
    1,
  ]);
});

describe('persons', () => {
  const send = async (tenant: Tenant, event: string, distinct_id: string, properties: object = {}) => {
    const batch = [{ event, distinct_id, properties }];
    const answer = await api.request(null, 'POST', '/batch/', { api_key: tenant.projectToken, batch });
    expect(answer.statusCode).toBe(200);
  };
  const personOf = async (tenant: Tenant, distinctId: string) => {
    const answer = await api.request(
      tenant,
      'GET',
      `/api/projects/@current/persons/?distinct_id=${distinctId}`,
    );
    return answer.json().results[0].id as string;
  };
  const mark = (tenant: Tenant, personId: string) =>
    api.pool.query('insert into scratch_marks values ($1, $2)', [tenant.projectId, personId]);

  test('who become one: it is told in their transaction', async () => {
    const tenant = await api.createTenant('Merging');
    for (const distinctId of ['visitor', 'eve', 'bystander']) await send(tenant, 'seen', distinctId);
    const [visitor, eve, bystander] = [
      await personOf(tenant, 'visitor'),
      await personOf(tenant, 'eve'),
      await personOf(tenant, 'bystander'),
    ];
    await mark(tenant, visitor);
    await mark(tenant, bystander);
    await send(tenant, '$identify', 'eve', { $anon_distinct_id: 'visitor' });
    expect(await personOf(tenant, 'visitor')).toBe(eve);
    expect((await markedPersons(tenant.projectId)).sort()).toEqual([eve, bystander].sort());
  });

  test('who are deleted: it is told in that transaction', async () => {
    const tenant = await api.createTenant('Forgetting');
    for (const distinctId of ['one', 'two', 'three']) await send(tenant, 'seen', distinctId);
    const ids = [];
    for (const distinctId of ['one', 'two', 'three']) ids.push(await personOf(tenant, distinctId));
    for (const id of ids) await mark(tenant, id);
    const [one, two, three] = ids as [string, string, string];
    const url = '/api/projects/@current/persons/';
    expect((await api.request(tenant, 'DELETE', `${url}${one}/`)).statusCode).toBe(204);
    expect((await markedPersons(tenant.projectId)).sort()).toEqual([two, three].sort());
    await api.request(tenant, 'POST', `${url}bulk_delete/`, { ids: [two, randomUUID()] });
    expect(await markedPersons(tenant.projectId)).toEqual([three]);
  });
});

test('maintenance runs its step and counts it by its name', async () => {
  const tenant = await api.createTenant('Tidy');
  for (const text of ['', 'kept']) await note(tenant, text);
  const report = await maintain();
  expect(await textsOf(tenant.projectId)).toEqual(['kept']);
  expect([report.failed, report.counts.deleteEmptyScratchNotes]).toEqual([[], expect.any(Number)]);
});

describe('the command line', () => {
  test('has its commands, its scopes and its checks', async () => {
    const tenant = await api.createTenant('Operator');
    expect(await run(['note', String(tenant.projectId), 'by hand'])).toMatchObject({ code: 0, stderr: '' });
    expect(await textsOf(tenant.projectId)).toEqual(['by hand']);
    const { rows } = await api.pool.query('select actor, activity from activity_log where project_id = $1', [
      tenant.projectId,
    ]);
    expect(rows).toEqual([{ actor: 'operator', activity: 'created' }]);
    const key = await run(['key', 'create', tenant.email, '--scopes', 'scratch_note:write']);
    const created = await api.request(key.stdout.trim(), 'POST', notesUrl(tenant.projectId), {
      text: 'by key',
    });
    expect(created.statusCode).toBe(201);
    const { findings } = JSON.parse((await run(['doctor', '--json'])).stdout);
    expect(findings).toContainEqual({
      check: 'notes',
      ok: true,
      sentence: expect.stringMatching(/^There are \d+ notes\.$/),
    });
  });

  test('backs it up with the keys of its secrets, and restores it', async () => {
    const tenant = await api.createTenant('Careful');
    await note(tenant, 'kept');
    const backup = path.join(directory, 'backup');
    expect(await run(['backup', backup])).toMatchObject({ code: 0 });
    const manifest = readBackupManifest(backup);
    expect(manifest.encryption_key_ids).toEqual(['scratch-key']);
    expect(manifest.tables.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['scratch_notes', 'scratch_marks']),
    );
    await withDatabase(async (other) => {
      await other.pool.query(SCRATCH_TABLES);
      const restored = await sluice(['restore', backup], {
        DATABASE_URL: other.url,
        SLUICE_ENCRYPTION_KEYS: KEYS,
      });
      expect(restored).toMatchObject({ code: 0 });
      const pool = createPool({ url: other.url, size: 1, name: 'test' });
      expect(await textsOf(tenant.projectId, pool)).toEqual(['kept']);
      await pool.end();
    });
  });
});

test('its metrics are in the registry of a worker', async () => {
  const registry = createRegistry('worker');
  for (const product of products) product.registerMetrics?.(registry, api.pool);
  expect(await registry.metrics()).toMatch(/^sluice_scratch_notes\{?[^}]*\}? \d+$/m);
});
