import { createServer, type Server } from 'node:http';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { uuidv7 } from '../../db/uuid.ts';
import { createTenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { reservePort } from '../support/ports.ts';
import { programsForFile } from '../support/programs.ts';
import { diskPostgresForFile, onSmallDisk, whySkipped } from './disk-postgres.ts';

const programs = programsForFile();
const world = diskPostgresForFile();
let server: Server;
let target: string;
/** The keys under which each event has arrived, one for each arrival. */
const arrived = new Map<string, unknown[]>();

beforeAll(async () => {
  const port = await reservePort();
  target = `http://127.0.0.1:${port}/`;
  server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { uuid } = JSON.parse(body);
    arrived.set(uuid, [...(arrived.get(uuid) ?? []), request.headers['idempotency-key']]);
    // An answer that is kept makes the tables grow.
    setTimeout(() => response.end(JSON.stringify({ answer: uuid.repeat(100) })), 20);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
});
afterAll(() => {
  server?.closeAllConnections();
  server?.close();
});

onSmallDisk(`a full disk${whySkipped}`, () => {
  test('while functions run: nothing is lost, nothing is sent twice, and all goes on by itself', async () => {
    await world.moveLog(path.join(world.folder, 'wal'));
    const settings = {
      DATABASE_URL: world.postgres.url,
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      SLUICE_EGRESS_ALLOW: '127.0.0.1',
      // Results are kept in memory for as long as their invocations are ours.
      SLUICE_FUNCTION_LEASE_SECONDS: '900',
    };
    const api = await programs.ready(await programs.startApi({ ...settings, SLUICE_LOG_LEVEL: 'fatal' }));
    const worker = programs.start('worker/main.ts', { ...settings, SLUICE_LOG_LEVEL: 'warn' });
    const { projectId, key, projectToken } = await createTenant(world.pool, 'Functions');
    const made = await fetch(`${api.url}/api/projects/${projectId}/hog_functions/`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ type: 'destination', enabled: true, filters: { events: [{ id: 'paid', type: 'events' }] } },
        hog: `fetch('${target}', {'body': {'uuid': event.uuid}})`,
      }),
    });
    expect(made.status).toBe(201);
    const { id } = (await made.json()) as { id: string };

    const acknowledged = new Set<string>();
    let refused = 0;
    let isOver = false;
    const client = async () => {
      while (!isOver) {
        const uuids = Array.from({ length: 25 }, () => uuidv7());
        const batch = uuids.map((uuid) => ({
          ...{ uuid, event: 'paid', distinct_id: 'ada', properties: { padding: uuid.repeat(50) } },
        }));
        const body = JSON.stringify({ api_key: projectToken, batch });
        for (;;) {
          const answer = await fetch(`${api.url}/batch/`, { method: 'POST', body });
          if (answer.status === 200) break;
          expect(answer.status).toBe(503);
          refused += 1;
          await pause(50);
        }
        for (const uuid of uuids) acknowledged.add(uuid);
        // Events shall be on their way all the time, but not so many that the rest of the test delivers what is left.
        await pause(250);
      }
    };
    const clients = Array.from({ length: 8 }, client);
    const progress = async (more: number) => {
      const before = arrived.size;
      await eventually(async () => arrived.size > before + more);
    };
    await progress(500);
    world.disk.fill();
    await eventually(async () => refused > 4);
    await eventually(async () => worker.output().includes('No space left on device'));
    world.disk.free();
    await progress(500);
    isOver = true;
    await Promise.all(clients);
    await eventually(async () => {
      const { rows } = await world.pool.query(
        `select (select count(*) from function_batches)::int + (select count(*) from function_late_batches)::int
           + (select count(*) from function_queue)::int as left`,
      );
      return rows[0].left === 0;
    });
    expect([...acknowledged].filter((uuid) => !arrived.has(uuid))).toEqual([]);
    expect([...arrived.values()].filter((keys) => keys.length !== 1)).toEqual([]);
    const { rows } = await world.pool.query(
      `select count(*)::int as all, count(distinct event_uuid)::int as events,
         count(*) filter (where status = 'succeeded')::int as succeeded from function_invocations where function_id = $1`,
      [id],
    );
    expect(rows[0]).toEqual({ all: arrived.size, events: arrived.size, succeeded: arrived.size });
  });
});
