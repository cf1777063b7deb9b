import { beforeAll, expect, test } from '@jest/globals';
import { createTenant, type Tenant } from '../support/api.ts';
import { makeDataDir } from '../support/data-dir.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { programsForFile } from '../support/programs.ts';
import { insertEvents } from '../support/rows.ts';
import { allocateNamespace } from '../support/temporal.ts';

const EVENTS = 4_000;

const programs = programsForFile();
const database = databaseForFile();
let tenant: Tenant;

beforeAll(async () => {
  tenant = await createTenant(database.pool, 'Anna');
  await insertEvents(
    database.pool,
    Array.from({ length: EVENTS }, (_, index) => ({
      ...{ project_id: tenant.projectId, event: 'hello', distinct_id: `d-${index}` },
      timestamp: new Date(Date.now() - index * 1_000).toISOString(),
    })),
  );
});

const start = async () => {
  const { address, namespace } = allocateNamespace();
  const api = await programs.ready(
    await programs.startApi({
      ...{ DATABASE_URL: database.url, TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace },
      ...{ SLUICE_DATA_DIR: makeDataDir(), SLUICE_METRICS_PORT: '0', SLUICE_LOG_LEVEL: 'warn' },
    }),
  );
  const ask = (method: string, path: string, body?: object) =>
    fetch(`${api.url}/api/projects/${tenant.projectId}/query/${path}`, {
      method,
      headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  return { api, ask };
};

/** For how many queries in the background Postgres works. */
const active = async () => {
  const { rowCount } = await database.pool.query(
    `select from pg_stat_activity
     where datname = current_database() and application_name = 'sluice-background' and state = 'active'`,
  );
  return rowCount;
};

test('a query in the background whose process is killed is answered by another one', async () => {
  const first = await start();
  // Some seconds of work for Postgres.
  const query = {
    kind: 'HogQLQuery',
    query:
      'select count() from events a join events b on a.event = b.event where a.distinct_id <= b.distinct_id',
  };
  const begun = await first.ask('POST', '', { query, async: true, client_query_id: 'long' });
  expect(begun.status).toBe(202);
  await eventually(async () => (await active()) === 1);
  first.api.kill('SIGKILL');
  await first.api.exited;
  const second = await start();
  const body = await eventually(async () => {
    const answer = await second.ask('GET', 'long/');
    return (
      answer.status !== 202 && (answer.json() as Promise<{ query_status: { results: { results: unknown } } }>)
    );
  });
  expect(body.query_status.results.results).toEqual([[(EVENTS * (EVENTS + 1)) / 2]]);
  const { rows } = await database.pool.query('select state, attempts from background_queries');
  expect(rows).toEqual([{ state: 'completed', attempts: 2 }]);

  // One that is cancelled ends in Postgres too, while the process goes on.
  await second.ask('POST', '', { query, async: true, client_query_id: 'cancelled' });
  await eventually(async () => (await active()) === 1);
  expect((await second.ask('DELETE', 'cancelled/')).status).toBe(200);
  await eventually(async () => (await active()) === 0);
  expect((await second.ask('GET', 'cancelled/')).status).toBe(404);
});
