import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { startTemporal, type Temporal } from '../../stack/temporal.ts';
import { createTenant } from '../support/api.ts';
import { cacheDir, makeDataDir } from '../support/data-dir.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { reservePort } from '../support/ports.ts';
import { programsForFile } from '../support/programs.ts';

const programs = programsForFile();
const database = databaseForFile();
let dataDir: string;
let temporal: Temporal | undefined;

beforeAll(() => {
  dataDir = makeDataDir();
});
afterAll(async () => {
  await temporal?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

describe('Temporal absent at the start', () => {
  test('the API is ready without it; the worker polls by itself when it comes; work left behind is done', async () => {
    const port = await reservePort();
    const env = { DATABASE_URL: database.url, TEMPORAL_ADDRESS: `127.0.0.1:${port}` };
    const api = await programs.ready(await programs.startApi(env));
    const worker = programs.start('worker/main.ts', env);
    expect((await api.readiness())?.checks).toEqual({
      postgres: 'ok',
      migrations: 'ok',
      temporal: 'unavailable',
      draining: false,
    });
    await eventually(async () => worker.output().includes('no worker is running; trying again'));
    const tenant = await createTenant(database.pool, 'Deleted without Temporal');
    const deleted = await fetch(`${api.url}/api/organizations/${tenant.organizationId}/`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${tenant.key}` },
    });
    expect(deleted.status).toBe(204);

    temporal = await startTemporal({ dataDir, cacheDir, port, uiPort: 0 });
    await eventually(async () => worker.output().includes('the worker polls'));
    await eventually(async () => (await api.readiness())?.checks.temporal === 'ok');
    await eventually(async () => {
      const { rows } = await database.pool.query(
        'select 1 from project_deletions where project_id = $1 and data_deleted_at is not null',
        [tenant.projectId],
      );
      return rows.length === 1;
    });
    const connection = await Connection.connect({ address: env.TEMPORAL_ADDRESS });
    const upkeep = await new Client({ connection }).workflow.getHandle('sluice-maintenance').describe();
    expect(upkeep.status.name).toBe('RUNNING');
    await connection.close();
    for (const program of [api, worker]) {
      program.kill('SIGTERM');
      expect(await program.exited).toEqual({ code: 0, signal: null });
    }
  });
});
