import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import type { RunRow } from '../../exports/rows/runs.ts';
import { exportWorldForFile, fillHourInBulk, hourly, uuidsOf } from '../exports/support.ts';
import { eventually } from '../support/eventually.ts';
import { faultProxyForFile } from '../support/fault-proxy.ts';
import { googleStorageForFile } from '../support/google-storage.ts';
import { programsForFile } from '../support/programs.ts';

const EVENTS = 20_000;
const google = googleStorageForFile();
const proxy = faultProxyForFile(() => google.endpoint);
const programs = programsForFile();
const world = exportWorldForFile({ worker: false });
let uuids: string[];
const held: ServerResponse[] = [];

beforeAll(async () => {
  await fillHourInBulk(world.pool, 0, EVENTS);
  const { rows } = await world.pool.query('select uuid from events order by uuid');
  uuids = rows.map((row) => row.uuid);
});
afterAll(() => {
  for (const one of held) one.destroy();
});

async function startWorker() {
  const worker = programs.start('worker/main.ts', {
    ...world.variables,
    SLUICE_LOG_LEVEL: 'info',
    // What is held back here is held back for as long as the test needs.
    SLUICE_DESTINATION_SECONDS: '600',
  });
  await eventually(async () => worker.output().includes('the worker polls'));
  return worker;
}

async function create(): Promise<{ bucket: string; row: BatchExportRow }> {
  const bucket = await google.createBucket();
  const row = await world.create('GoogleCloudStorage', {
    ...{ bucket_name: bucket, service_account_key: JSON.stringify(google.keyFile) },
    ...{ endpoint_url: proxy.endpoint, max_file_size_mb: 8 },
  });
  return { bucket, row };
}

/** One copy of everything, and nothing left that a reader sees. */
async function expectWhole(bucket: string, run: RunRow): Promise<void> {
  expect(run).toMatchObject({ status: 'Completed', records_completed: EVENTS, records_failed: 0 });
  const manifest = JSON.parse((await google.read(bucket, run.manifest_key as string)).toString());
  const keys: string[] = manifest.files.map((file: { key: string }) => file.key);
  // Where an hour ends meanwhile, its own run writes there, too.
  const stem = String(run.manifest_key).replace('_manifest.json', '');
  const there = (await google.objectsIn(bucket)).filter((name) => name.startsWith(stem));
  expect([...keys, run.manifest_key].sort()).toEqual(there);
  const found: string[] = [];
  for (const key of keys) found.push(...uuidsOf(await google.read(bucket, key), key));
  expect(found.sort()).toEqual(uuids);
}

const rangeOf = ({ headers }: IncomingMessage) => String(headers['content-range'] ?? '');
const steps: [string, (request: IncomingMessage) => boolean][] = [
  ['a part is on its way', (request) => rangeOf(request).endsWith('/*')],
  ['the end of a file is on its way', (request) => /\/\d+$/.test(rangeOf(request))],
  ['the manifest is to be written', ({ method, url = '' }) => method === 'POST' && url.includes('_manifest')],
];

test('workers that are killed at every step of a run, and another that goes on', async () => {
  const first = await startWorker();
  const waiting = new Map<string, (request: IncomingMessage) => boolean>();
  proxy.harm = (request, response, forward) => {
    const found = [...waiting].find(
      ([bucket, isIt]) => request.url?.includes(`/b/${bucket}/`) && isIt(request),
    );
    if (!found) return forward();
    waiting.delete(found[0]);
    held.push(response);
  };
  const victims = [];
  for (const [, isIt] of steps) {
    const { bucket, row } = await create();
    waiting.set(bucket, isIt);
    victims.push({ bucket, handle: await world.start(row, hourly(0)) });
  }
  await eventually(async () => waiting.size === 0);
  await startWorker();
  first.kill('SIGKILL');
  await first.exited;
  for (const { bucket, handle } of victims) await expectWhole(bucket, (await world.finished(handle)).run);
});

test.each<[string, (response: ServerResponse) => void]>([
  ['says that it cannot now', (response) => void response.writeHead(503).end()],
  ['cuts connections', (response) => void response.destroy()],
])('Google %s, now and then: the run is whole', async (_what, harm) => {
  let asked = 0;
  proxy.harm = (request, response, forward) => {
    asked += 1;
    if (asked > 12 || asked % 3 !== 0) return forward();
    request.resume();
    harm(response);
  };
  const { bucket, row } = await create();
  const { run } = await world.run(row, hourly(0));
  expect(asked).toBeGreaterThan(3);
  await expectWhole(bucket, run);
});
