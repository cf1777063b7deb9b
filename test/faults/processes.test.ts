import { createServer } from 'node:net';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { createTenant } from '../support/api.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { programsForFile } from '../support/programs.ts';
import { allocateNamespace } from '../support/temporal.ts';

const programs = programsForFile();
const database = databaseForFile();

const environment = () => {
  const { address, namespace } = allocateNamespace();
  return { DATABASE_URL: database.url, TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace };
};

describe('two API processes and two workers', () => {
  test('share one Postgres and one Temporal, and stop in order', async () => {
    const env = environment();
    const [one, two] = await Promise.all([programs.startApi(env), programs.startApi(env)]);
    const workers = [programs.start('worker/main.ts', env), programs.start('worker/main.ts', env)];
    await Promise.all([programs.ready(one), programs.ready(two)]);
    await Promise.all(
      workers.map((worker) => eventually(async () => worker.output().includes('the worker polls'))),
    );
    const tenant = await createTenant(database.pool, 'Shared');
    const headers = { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' };
    const made = await fetch(`${one.url}/api/projects/`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ name: 'Made here' }),
    });
    const { id } = (await made.json()) as { id: number };
    const seen = await fetch(`${two.url}/api/projects/${id}/`, { headers });
    expect(((await seen.json()) as { name: string }).name).toBe('Made here');

    const connection = await Connection.connect({ address: env.TEMPORAL_ADDRESS });
    const client = new Client({ connection, namespace: env.TEMPORAL_NAMESPACE });
    const maintenance = client.workflow.getHandle('sluice-maintenance');
    await eventually(async () => {
      const shown = await maintenance
        .query<{ currentDetails?: string }>('__temporal_workflow_metadata')
        .catch(() => undefined);
      return shown?.currentDetails?.startsWith('**Done** at ');
    });
    // Whichever worker is left carries on alone.
    workers[0]?.kill('SIGTERM');
    expect(await workers[0]?.exited).toEqual({ code: 0, signal: null });
    const deleted = await fetch(`${two.url}/api/projects/${id}/`, { method: 'DELETE', headers });
    expect(deleted.status).toBe(204);
    await eventually(async () => {
      const { rows } = await database.pool.query(
        'select 1 from project_deletions where project_id = $1 and data_deleted_at is not null',
        [id],
      );
      return rows.length === 1;
    });
    await connection.close();
    for (const program of [one, two, workers[1] as (typeof workers)[0]]) {
      program.kill('SIGTERM');
      expect(await program.exited).toEqual({ code: 0, signal: null });
    }
  });
});

describe('SIGTERM', () => {
  test('lets the request in flight finish, and readiness says no meanwhile', async () => {
    const api = await programs.ready(await programs.startApi(environment()));
    const tenant = await createTenant(database.pool, 'Drained');
    const client = await database.pool.connect();
    await client.query('begin');
    await client.query('select 1 from organizations where id = $1 for update', [tenant.organizationId]);
    const slow = fetch(`${api.url}/api/organizations/${tenant.organizationId}/`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Changed while stopping' }),
    });
    await eventually(async () => {
      const { rows } = await database.pool.query(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rows.length > 0;
    });
    api.kill('SIGTERM');
    const draining = await eventually(async () => {
      const answer = await api.readiness();
      return answer?.status === 503 ? answer : undefined;
    });
    expect(draining.checks).toMatchObject({ postgres: 'ok', migrations: 'ok', draining: true });
    expect((await fetch(`${api.url}/_livez`)).status).toBe(200);
    await client.query('commit');
    client.release();
    const answer = await slow;
    expect([answer.status, ((await answer.json()) as { name: string }).name]).toEqual([
      200,
      'Changed while stopping',
    ]);
    expect(await api.exited).toEqual({ code: 0, signal: null });
    expect(await api.readiness()).toBeUndefined();
  });

  test('while nothing is in flight ends at once, twice is as good as once', async () => {
    const api = await programs.ready(await programs.startApi(environment()));
    api.kill('SIGINT');
    expect(await api.exited).toEqual({ code: 0, signal: null });
    expect(api.output()).toContain('"msg":"stopped"');
  });
});

describe('a process that cannot start says why in one sentence and ends with 78', () => {
  test.each([
    ['api/main.ts', { SLUICE_NOTHING: 'x' }, 'SLUICE_NOTHING: no such setting\n'],
    [
      'worker/main.ts',
      { PORT: 'x', SLUICE_MIGRATE: 'maybe' },
      'PORT: Invalid input: expected number, received NaN\n',
    ],
    [
      'api/main.ts',
      { DATABASE_URL: '' },
      'DATABASE_URL is not set. `npm start` runs a Postgres of its own; otherwise set it.',
    ],
    [
      'worker/main.ts',
      { DATABASE_URL: '' },
      'DATABASE_URL is not set. `npm start` runs a Postgres of its own; otherwise set it.',
    ],
    [
      'api/main.ts',
      { TEMPORAL_ADDRESS: '' },
      'TEMPORAL_ADDRESS is not set. `npm start` runs a Temporal of its own; otherwise set it.',
    ],
    [
      'api/main.ts',
      { TEMPORAL_TLS_CERT: 'x' },
      'TEMPORAL_TLS_CERT and TEMPORAL_TLS_KEY go together; only one of them is set.',
    ],
    [
      'api/main.ts',
      { TEMPORAL_TLS_CA: '/nowhere' },
      "TEMPORAL_TLS_CA: the file /nowhere cannot be read (ENOENT: no such file or directory, open '/nowhere').",
    ],
    [
      'api/main.ts',
      { SLUICE_GEOIP_DATABASE: '/nowhere.mmdb' },
      "SLUICE_GEOIP_DATABASE: the file /nowhere.mmdb cannot be read (ENOENT: no such file or directory, stat '/nowhere.mmdb').",
    ],
    [
      'api/main.ts',
      { SLUICE_GEOIP_DATABASE: 'package.json' },
      `SLUICE_GEOIP_DATABASE: ${path.resolve('package.json')} is not a complete MaxMind database (.mmdb).`,
    ],
  ])('%s %j', async (file, more, sentence) => {
    const env = {
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      PORT: '0',
      SLUICE_HOST: '127.0.0.1',
    };
    const program = programs.start(file, { ...env, ...(more as Record<string, string>) });
    expect(await program.exited).toEqual({ code: 78, signal: null });
    expect(program.output()).toContain(sentence);
  });

  test('a port in use', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const env = { DATABASE_URL: database.url, TEMPORAL_ADDRESS: '127.0.0.1:1', SLUICE_HOST: '127.0.0.1' };
    const runs = [
      programs.start('api/main.ts', { ...env, PORT: String(port) }),
      programs.start('api/main.ts', { ...env, PORT: '0', SLUICE_METRICS_PORT: String(port) }),
    ];
    for (const [index, name] of ['PORT', 'SLUICE_METRICS_PORT'].entries()) {
      expect(await runs[index]?.exited).toEqual({ code: 78, signal: null });
      expect(runs[index]?.output()).toContain(
        `Port ${port} (${name}) is in use by another program; free it or set another one.`,
      );
    }
    server.close();
  });

  test('a database newer than the code', async () => {
    await database.pool.query(`insert into migrations (id, name, hash) values (9999, 'future', 'x')`);
    const env = {
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      PORT: '0',
      SLUICE_HOST: '127.0.0.1',
    };
    const runs = [programs.start('api/main.ts', env), programs.start('worker/main.ts', env)];
    for (const run of runs) {
      expect(await run.exited).toEqual({ code: 78, signal: null });
      expect(run.output()).toContain(
        'The database is newer than this Sluice: it has migration 9999 (future)',
      );
    }
    await database.pool.query('delete from migrations where id = 9999');
  });
});
