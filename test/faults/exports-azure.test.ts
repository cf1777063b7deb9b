import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import type { RunRow } from '../../exports/rows/runs.ts';
import { exportWorldForFile, fillHourInBulk, hourly, uuidsOf } from '../exports/support.ts';
import { azuriteForFile, blobsIn } from '../support/azurite.ts';
import { eventually } from '../support/eventually.ts';
import { faultProxyForFile } from '../support/fault-proxy.ts';
import { programsForFile } from '../support/programs.ts';

const EVENTS = 20_000;
const azure = azuriteForFile();
const proxy = faultProxyForFile(() => new URL(azure.endpoint).origin);
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

async function create(): Promise<{ container: string; row: BatchExportRow }> {
  const container = await azure.createContainer();
  const row = await world.create('AzureBlob', {
    ...{ container_name: container, account_name: azure.account, account_key: azure.key },
    ...{ endpoint_url: `${proxy.endpoint}/${azure.account}`, max_file_size_mb: 8 },
  });
  return { container, row };
}

/** One copy of everything, and nothing left that a reader sees. */
async function expectWhole(container: string, run: RunRow): Promise<void> {
  expect(run).toMatchObject({ status: 'Completed', records_completed: EVENTS, records_failed: 0 });
  const client = azure.container(container);
  const read = (key: string) => client.getBlobClient(key).downloadToBuffer();
  const manifest = JSON.parse((await read(run.manifest_key as string)).toString());
  const keys: string[] = manifest.files.map((file: { key: string }) => file.key);
  // Where an hour ends meanwhile, its own run writes there, too.
  const stem = String(run.manifest_key).replace('_manifest.json', '');
  const there = (await blobsIn(client)).filter((name) => name.startsWith(stem));
  expect([...keys, run.manifest_key].sort()).toEqual(there.sort());
  const found: string[] = [];
  for (const key of keys) found.push(...uuidsOf(await read(key), key));
  expect(found.sort()).toEqual(uuids);
}

const steps: [string, (request: IncomingMessage) => boolean][] = [
  ['a block is on its way', ({ url = '' }) => url.includes('comp=block&')],
  ['the blocks are to be joined', ({ url = '' }) => url.includes('comp=blocklist')],
  ['the manifest is to be written', ({ method, url = '' }) => method === 'PUT' && url.includes('_manifest')],
];

test('workers that are killed at every step of a run, and another that goes on', async () => {
  const first = await startWorker();
  const waiting = new Map<string, (request: IncomingMessage) => boolean>();
  proxy.harm = (request, response, forward) => {
    const found = [...waiting].find(
      ([container, isIt]) => request.url?.includes(`/${container}/`) && isIt(request),
    );
    if (!found) return forward();
    waiting.delete(found[0]);
    held.push(response);
  };
  const victims = [];
  for (const [, isIt] of steps) {
    const { container, row } = await create();
    waiting.set(container, isIt);
    victims.push({ container, handle: await world.start(row, hourly(0)) });
  }
  await eventually(async () => waiting.size === 0);
  await startWorker();
  first.kill('SIGKILL');
  await first.exited;
  for (const { container, handle } of victims)
    await expectWhole(container, (await world.finished(handle)).run);
});

test.each<[string, (response: ServerResponse) => void]>([
  [
    'says that it cannot now',
    (response) => void response.writeHead(503, { 'x-ms-error-code': 'ServerBusy' }).end(),
  ],
  ['cuts connections', (response) => void response.destroy()],
])('Azure %s, now and then: the run is whole', async (_what, harm) => {
  let asked = 0;
  proxy.harm = (request, response, forward) => {
    asked += 1;
    if (asked > 12 || asked % 3 !== 0) return forward();
    request.resume();
    harm(response);
  };
  const { container, row } = await create();
  const { run } = await world.run(row, hourly(0));
  expect(asked).toBeGreaterThan(3);
  await expectWhole(container, run);
});
