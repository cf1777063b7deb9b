import { rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { uuidv7 } from '../../db/uuid.ts';
import { startTemporal, type Temporal } from '../../stack/temporal.ts';
import { createTenant } from '../support/api.ts';
import { cacheDir, makeDataDir } from '../support/data-dir.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { reservePort } from '../support/ports.ts';
import { programsForFile } from '../support/programs.ts';
import { insertEvents } from '../support/rows.ts';

interface Answer {
  id: string;
  status: string;
  queued: number;
  rerun: { id: string };
}

const NUMBER = 3_000;
const programs = programsForFile();
const database = databaseForFile();
const dataDir = makeDataDir();
/** The keys under which each event has arrived. */
const arrived = new Map<string, Set<unknown>>();
let temporal: Temporal | undefined;
let server: Server;
let port: number;

beforeAll(async () => {
  port = await reservePort();
  server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { uuid } = JSON.parse(body);
    arrived.set(uuid, (arrived.get(uuid) ?? new Set()).add(request.headers['idempotency-key']));
    response.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
});
afterAll(async () => {
  server?.closeAllConnections();
  server?.close();
  await temporal?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

test('Temporal is killed during a replay and during a rerun: each goes on, and each event has one invocation of each', async () => {
  const start = (at: number) => startTemporal({ dataDir, cacheDir, port: at, uiPort: 0 });
  temporal = await start(0);
  const env = {
    ...{ DATABASE_URL: database.url, TEMPORAL_ADDRESS: temporal.address },
    ...{ SLUICE_LOG_LEVEL: 'info', SLUICE_EGRESS_ALLOW: '127.0.0.1' },
  };
  const api = await programs.ready(await programs.startApi(env));
  const worker = programs.start('worker/main.ts', env);
  await eventually(async () => worker.output().includes('the worker polls'));
  const { projectId, key } = await createTenant(database.pool, 'Replayed');
  const uuids = Array.from({ length: NUMBER }, () => uuidv7());
  await insertEvents(
    database.pool,
    uuids.map((uuid, index) => ({
      ...{ project_id: projectId, uuid, event: 'order', distinct_id: `d-${index % 7}` },
      timestamp: new Date(Date.UTC(2026, 2, 1) + index * 1_000).toISOString(),
      inserted_at: new Date(Date.now() - 60_000).toISOString(),
    })),
  );
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${api.url}/api/projects/${projectId}/hog_functions/${path}`, {
      ...{ method, headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' } },
      body: body ? JSON.stringify(body) : null,
    });
    const shown = (await answer.json()) as Answer;
    if (!answer.ok) throw new Error(JSON.stringify(shown));
    return shown;
  };
  const { id } = await ask('POST', '', {
    ...{ type: 'destination', enabled: true, filters: { events: [{ id: 'order', type: 'events' }] } },
    hog: `fetch('http://127.0.0.1:${port}/', {'body': {'uuid': event.uuid}})`,
  });

  /** Kills Temporal when a part of the work is done, and waits until all of it is. */
  const survive = async (replay: string) => {
    const shown = () => ask('GET', `${id}/replays/${replay}/`);
    await eventually(async () => (await shown()).queued > 0);
    expect((await shown()).status).toBe('running');
    const killed = temporal as Temporal;
    process.kill(killed.pid, 'SIGKILL');
    await killed.exited;
    temporal = await start(killed.port);
    return eventually(async () => {
      const now = await shown();
      return now.status !== 'running' && now;
    });
  };
  const counts = async () => {
    const { rows } = await database.pool.query(
      `select count(*)::int as all, count(distinct event_uuid)::int as events, count(rerun_of)::int as reruns,
         count(*) filter (where status = 'succeeded')::int as succeeded,
         (select count(*)::int from function_queue) as waiting
       from function_invocations where function_id = $1`,
      [id],
    );
    return rows[0];
  };
  // Slow enough for something to be left when Temporal dies.
  const rate = { rate_per_second: 150 };
  const range = { after: '2026-03-01T00:00:00.000Z', before: '2026-03-02T00:00:00.000Z' };
  const replay = await ask('POST', `${id}/replay/`, { ...range, ...rate });
  expect(await survive(replay.id)).toMatchObject({ status: 'completed', queued: NUMBER, matched: NUMBER });
  await eventually(async () => (await counts()).waiting === 0);
  const once = { events: NUMBER, waiting: 0 };
  expect(await counts()).toEqual({ ...once, all: NUMBER, succeeded: NUMBER, reruns: 0 });
  expect([...arrived.values()].map((keys) => keys.size)).toEqual(Array(NUMBER).fill(1));

  const { rerun } = await ask('POST', `${id}/rerun/`, {
    ...{ after: '2026-01-01T00:00:00.000Z', status: 'succeeded', ...rate },
  });
  expect(await survive(rerun.id)).toMatchObject({ status: 'completed', queued: NUMBER });
  await eventually(async () => (await counts()).waiting === 0);
  expect(await counts()).toEqual({ ...once, all: 2 * NUMBER, succeeded: 2 * NUMBER, reruns: NUMBER });
  expect([...arrived.keys()].sort()).toEqual(uuids.sort());
  expect([...arrived.values()].map((keys) => keys.size)).toEqual(Array(NUMBER).fill(2));
});
