import { rmSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createPool } from '../../db/pool.ts';
import { type Postgres, startPostgres } from '../../stack/postgres.ts';
import { createTenant } from '../support/api.ts';
import { cacheDir, makeDataDir } from '../support/data-dir.ts';
import { eventually } from '../support/eventually.ts';
import { programsForFile } from '../support/programs.ts';
import { allocateNamespace } from '../support/temporal.ts';

const programs = programsForFile();
let dataDir: string;
let postgres: Postgres;

async function startAgain(port: number): Promise<Postgres> {
  return startPostgres({ dataDir, cacheDir, port, database: 'faults' });
}

beforeAll(async () => {
  dataDir = makeDataDir();
  postgres = await startAgain(0);
});
afterAll(async () => {
  await postgres?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

interface Count {
  statuses: Record<string, number>;
  created: number[];
  withoutRetryAfter: number;
  bodies: Set<string>;
}

/** Reads and writes as fast as the API answers, until it is told to stop. */
async function load(url: string, key: string, count: Count, isOver: () => boolean): Promise<void> {
  for (let n = 0; !isOver(); n += 1) {
    const write = n % 2 === 1;
    const answer = await fetch(`${url}/api/projects/`, {
      method: write ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(write ? { body: JSON.stringify({ name: `Project ${n}` }) } : {}),
    });
    const text = await answer.text();
    count.statuses[answer.status] = (count.statuses[answer.status] ?? 0) + 1;
    if (answer.status === 201) count.created.push(JSON.parse(text).id);
    if (answer.status === 503) {
      count.bodies.add(text);
      if (answer.headers.get('retry-after') !== '2') count.withoutRetryAfter += 1;
    }
    // A busy loop of refusals would take the processor that the restart needs.
    if (answer.status !== 200 && answer.status !== 201) await pause(20);
  }
}

describe('Postgres restarted under load', () => {
  test.each(['SIGINT', 'SIGKILL'] as const)(
    'by %s: refusals with Retry-After, then all is well again',
    async (signal) => {
      const { address, namespace } = allocateNamespace();
      const api = await programs.ready(
        await programs.startApi({
          DATABASE_URL: postgres.url,
          TEMPORAL_ADDRESS: address,
          TEMPORAL_NAMESPACE: namespace,
          SLUICE_LOG_LEVEL: 'fatal',
        }),
      );
      const pool = createPool({ url: postgres.url, size: 1, name: 'test' });
      const tenant = await createTenant(pool, 'Load');
      await pool.end();

      const count: Count = { statuses: {}, created: [], withoutRetryAfter: 0, bodies: new Set() };
      let over = false;
      const clients = Array.from({ length: 4 }, () => load(api.url, tenant.key, count, () => over));
      const answered = (status: string, more = 0) =>
        eventually(async () => (count.statuses[status] ?? 0) > more);
      await answered('201');
      if (signal === 'SIGKILL') {
        process.kill(postgres.pid, 'SIGKILL');
        await postgres.exited;
      } else await postgres.stop();
      await answered('503', 3);
      expect((await api.readiness())?.status).toBe(503);
      postgres = await startAgain(postgres.port);
      await answered('201', count.created.length + 3);
      over = true;
      await Promise.all(clients);

      expect(Object.keys(count.statuses).sort()).toEqual(['200', '201', '503']);
      expect(count.withoutRetryAfter).toBe(0);
      expect([...count.bodies]).toEqual([
        '{"type":"server_error","code":"unavailable","detail":"The database is not available at the moment. Try again.","attr":null}',
      ]);
      // What was answered with 201 is there, whatever happened to the server.
      const after = createPool({ url: postgres.url, size: 1, name: 'test' });
      const { rows } = await after.query('select count(*)::int as count from projects where id = any($1)', [
        count.created,
      ]);
      await after.end();
      expect(rows).toEqual([{ count: count.created.length }]);
      expect((await api.readiness())?.status).toBe(200);
      expect(api.output()).toBe('');
      api.kill('SIGTERM');
      expect(await api.exited).toEqual({ code: 0, signal: null });
    },
  );
});

describe('Postgres absent at the start', () => {
  test('the API answers 503 until it comes, then migrates and serves', async () => {
    const { port } = postgres;
    await postgres.stop();
    const { address, namespace } = allocateNamespace();
    const url = new URL(postgres.url);
    url.pathname = '/faults';
    const api = await programs.startApi({
      DATABASE_URL: url.href,
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: namespace,
    });
    const refused = await eventually(async () => {
      const answer = await api.readiness();
      return answer?.status === 503 ? answer : undefined;
    });
    expect(refused.checks).toMatchObject({ postgres: 'unavailable', migrations: 'unknown', draining: false });
    const managed = await fetch(`${api.url}/api/organizations/`, {
      headers: { authorization: 'Bearer phx_x' },
    });
    expect([managed.status, managed.headers.get('retry-after')]).toEqual([503, '2']);
    expect((await fetch(`${api.url}/_livez`)).status).toBe(200);
    postgres = await startAgain(port);
    await programs.ready(api);
    expect(await eventually(async () => (await fetch(`${api.url}/api/organizations/`)).status === 401)).toBe(
      true,
    );
    expect(api.output()).toContain('waiting for Postgres');
    api.kill('SIGTERM');
    expect(await api.exited).toEqual({ code: 0, signal: null });
  });
});
