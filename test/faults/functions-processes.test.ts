import { rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createPool, type Pool } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { type Postgres, startPostgres } from '../../stack/postgres.ts';
import { createTenant } from '../support/api.ts';
import { cacheDir, makeDataDir } from '../support/data-dir.ts';
import { eventually } from '../support/eventually.ts';
import { reservePort } from '../support/ports.ts';
import { type ApiProgram, programsForFile } from '../support/programs.ts';

const programs = programsForFile();
let dataDir: string;
let postgres: Postgres;
let pool: Pool | undefined;
let server: Server;
let target: string;
/** The keys under which each event has arrived. */
const arrived = new Map<string, Set<unknown>>();

const startDatabase = (port: number) => startPostgres({ dataDir, cacheDir, port, database: 'faults' });
beforeAll(async () => {
  dataDir = makeDataDir();
  postgres = await startDatabase(0);
  const port = await reservePort();
  target = `http://127.0.0.1:${port}/`;
  server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { uuid } = JSON.parse(body);
    arrived.set(uuid, (arrived.get(uuid) ?? new Set()).add(request.headers['idempotency-key']));
    // Long enough for something to be under way when Postgres dies.
    setTimeout(() => response.end('{}'), 20);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
});
afterAll(async () => {
  server?.closeAllConnections();
  server?.close();
  await pool?.end();
  await postgres?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

const settings = () => ({
  DATABASE_URL: postgres.url,
  // Functions need no Temporal: it is away all the time.
  TEMPORAL_ADDRESS: '127.0.0.1:1',
  SLUICE_LOG_LEVEL: 'fatal',
  SLUICE_EGRESS_ALLOW: '127.0.0.1',
  SLUICE_FUNCTION_LEASE_SECONDS: '15',
});
const startApi = async (): Promise<ApiProgram> => programs.ready(await programs.startApi(settings()));

test('Postgres and the API are killed during dispatch and delivery: what was acknowledged arrives, under one key', async () => {
  let api = await startApi();
  programs.start('worker/main.ts', settings());
  const first = createPool({ url: postgres.url, size: 1, name: 'test' });
  const { projectId, key, projectToken } = await createTenant(first, 'Killed');
  await first.end();
  const made = await fetch(`${api.url}/api/projects/${projectId}/hog_functions/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ type: 'destination', enabled: true, filters: { events: [{ id: 'paid', type: 'events' }] } },
      hog: `fetch('${target}', {'body': {'uuid': event.uuid}})`,
    }),
  });
  const { id } = (await made.json()) as { id: string };
  expect(made.status).toBe(201);

  const acknowledged = new Set<string>();
  let isOver = false;
  const client = async () => {
    while (!isOver) {
      const uuids = Array.from({ length: 25 }, () => uuidv7());
      const batch = uuids.map((uuid) => ({ uuid, event: 'paid', distinct_id: 'ada' }));
      const body = JSON.stringify({ api_key: projectToken, batch });
      // Whoever got no answer sends the same again.
      for (;;) {
        const answer = await fetch(`${api.url}/batch/`, { method: 'POST', body }).catch(() => undefined);
        if (answer?.status === 200) break;
        await pause(50);
      }
      for (const uuid of uuids) acknowledged.add(uuid);
      // Events shall be on their way all the time, but not so many that the rest of the test delivers what is left.
      await pause(150);
    }
  };
  const clients = [client(), client()];
  const progress = (more: number) => {
    const before = arrived.size;
    return eventually(async () => arrived.size > before + more);
  };
  await progress(200);
  for (let round = 0; round < 2; round += 1) {
    process.kill(postgres.pid, 'SIGKILL');
    await postgres.exited;
    postgres = await startDatabase(postgres.port);
    await progress(200);
  }
  api.kill('SIGKILL');
  await api.exited;
  api = await startApi();
  await progress(200);
  isOver = true;
  await Promise.all(clients);
  pool = createPool({ url: postgres.url, size: 1, name: 'test' });
  const left = async () => {
    const { rows } = await (pool as Pool).query(
      'select (select count(*) from function_batches)::int + (select count(*) from function_queue)::int as left',
    );
    return rows[0].left === 0;
  };
  await eventually(left);
  expect([...acknowledged].filter((uuid) => !arrived.has(uuid))).toEqual([]);
  expect([...arrived.values()].filter((keys) => keys.size !== 1)).toEqual([]);
  const { rows } = await pool.query(
    `select count(*)::int as all, count(distinct event_uuid)::int as events, count(*) filter (where status = 'succeeded')::int as succeeded
     from function_invocations where function_id = $1`,
    [id],
  );
  expect(rows[0]).toEqual({ all: arrived.size, events: arrived.size, succeeded: arrived.size });
});
