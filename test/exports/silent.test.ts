import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { faultyS3ForFile, isComplete, isManifest } from '../support/faulty-s3.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { postgresSettings } from '../support/postgres-settings.ts';
import { exportedUuids, exportWorldForFile, fillHour, hourly } from './support.ts';

// Destinations that take a connection and say nothing more: what the run says meanwhile, and that it goes on by itself.

const s3 = faultyS3ForFile();
const target = databaseForFile();
const world = exportWorldForFile({
  limits: { answer: 1_000 },
  // Attempts that waited inside would wait for ever.
  patience: { attempts: 1_000_000, delay: () => 60_000 },
  rhythm: { wait: 200, pause: () => 100 },
});
let uuids: string[];
const started: WorkflowHandle[] = [];
const sockets = new Set<net.Socket>();
let connections = 0;
const silent = net.createServer((socket) => {
  connections += 1;
  sockets.add(socket);
  socket.on('error', () => undefined);
});
let port = 0;

beforeAll(async () => {
  uuids = (await fillHour(world.pool, 0, 20)).sort();
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  port = (silent.address() as AddressInfo).port;
});
afterEach(async () => {
  for (const handle of started.splice(0)) {
    await handle.cancel().catch(() => undefined);
    await world.finished(handle).catch(() => undefined);
  }
  for (const socket of sockets) socket.destroy();
});
afterAll(() => new Promise((resolve) => silent.close(resolve)));

async function begin(type: string, config: Record<string, unknown>) {
  const row = await world.create(type, config);
  const handle = await world.start(row, hourly(0));
  started.push(handle);
  const says = async (text: string) => {
    // While it goes on: the row of a run that has not ended.
    await eventually(async () => {
      const [run] = await world.runsOf(row);
      return run?.finished_at === null && run.latest_error?.includes(text);
    });
    await eventually(async () => (await world.logsOf(row)).some(({ message }) => message.includes(text)));
  };
  return { row, handle, says };
}

test('an address that never answers: each attempt ends, and the run says why', async () => {
  const bucket = await s3.bucket();
  for (const [type, config] of [
    ['Postgres', { ...postgresSettings(target.url, 'lake'), port }],
    ['HTTP', { url: `http://127.0.0.1:${port}/batch/`, token: 'phc_canary' }],
    ['S3', { ...bucket.config, endpoint_url: `https://127.0.0.1:${port}` }],
  ] as const) {
    const before = connections;
    const { says } = await begin(type, config);
    await says(`127.0.0.1:${port}`);
    await says('no answer');
    // The next attempt is one of Temporal's.
    await eventually(async () => connections >= before + 2);
  }
  // Nobody else waits for them.
  const { run } = await world.run(await world.create('File', { directory: 'lake' }), hourly(0));
  expect(run.status).toBe('Completed');
  expect(exportedUuids(`${world.root}/lake`)).toEqual(uuids);
});

test('silent at the commit of Postgres: the run says so, and completes when the server does', async () => {
  let isSilent = true;
  const proxy = await startPostgresProxy({
    behind: Number(new URL(target.url).port),
    watch: (piece) =>
      isSilent && piece.toString('latin1').includes('commit\0') ? new Promise(() => undefined) : undefined,
  });
  await target.pool.query('create table sea (uuid uuid primary key)');
  const { row, handle, says } = await begin('Postgres', {
    ...postgresSettings(target.url, 'sea'),
    port: proxy.port,
  });
  const place = `Postgres at 127.0.0.1:${proxy.port}, table "public.sea"`;
  await says(`Waits for ${place} to commit`);
  await says(`${place}: the server fell silent: it was to commit`);
  isSilent = false;
  const { run } = await world.finished(handle);
  expect(run).toMatchObject({ status: 'Completed', latest_error: null, records_completed: 20 });
  const { rows } = await target.pool.query('select uuid from sea order by uuid');
  expect(rows.map(({ uuid }) => uuid)).toEqual(uuids);
  expect((await world.logsOf(row)).map(({ message }) => message)).toContainEqual(
    expect.stringMatching(/^Attempt \d+ failed and will be repeated: .*fell silent/),
  );
  await proxy.close();
});

test('silent at a file, at its manifest, at its completion: nothing stays, and one copy comes', async () => {
  const bucket = await s3.bucket();
  let isSilent = true;
  s3.harm = (request, response, forward) => {
    const isLast = isComplete(request) || isManifest(request);
    if (!isSilent || !isLast) return forward();
    // A byte now and then, without an end.
    response.writeHead(200, { 'content-type': 'application/xml' });
    const trickle = setInterval(() => response.write(' '), 50);
    response.on('close', () => clearInterval(trickle));
  };
  const { handle, says } = await begin('S3', bucket.config);
  await says('no answer from 127.0.0.1');
  isSilent = false;
  const { run } = await world.finished(handle);
  expect(run).toMatchObject({ status: 'Completed', latest_error: null });
  const keys = await bucket.keys();
  expect(keys).toHaveLength(2);
  expect(await bucket.openUploads()).toBe(0);
});
