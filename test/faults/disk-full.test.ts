import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { loadConfig } from '../../config.ts';
import { createPool, type Pool } from '../../db/pool.ts';
import { type Postgres, startPostgres } from '../../stack/postgres.ts';
import { createTenant } from '../support/api.ts';
import { type ApiProgram, programsForFile } from '../support/programs.ts';
import { LONG } from '../support/rounds.ts';
import { compare, type Load, NOTHING_WRONG, startLoad } from './capture-load.ts';
import { mayMount, mountSmallDisk, type SmallDisk } from './small-disk.ts';

const DISK_MEGABYTES = 700;
const LOG_DISK_MEGABYTES = 200;
/** Little of it is for Postgres's own use, so that it is full soon. */
const SETTINGS = {
  shared_buffers: '32MB',
  min_wal_size: '32MB',
  max_wal_size: '64MB',
  checkpoint_timeout: '30s',
};

if (LONG) jest.setTimeout(300_000);
const onSmallDisk = mayMount() ? describe : describe.skip;
const whySkipped = onSmallDisk === describe ? '' : ' (skipped: this user may not mount a file system)';

let folder: string;
let disk: SmallDisk;
let logDisk: SmallDisk;
let postgres: Postgres;
let pool: Pool;
let api: ApiProgram;
let load: Load | undefined;
const programs = programsForFile();

async function start(port: number): Promise<void> {
  const { directory: dataDir } = disk;
  const { SLUICE_CACHE_DIR: cacheDir } = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR });
  postgres = await startPostgres({ dataDir, cacheDir, port, settings: SETTINGS });
}

/** Moves the write-ahead log to another disk; Postgres is started again over it. */
async function moveLog(to: string): Promise<void> {
  const { port } = postgres;
  await postgres.stop();
  const log = path.join(disk.directory, 'postgres', 'pg_wal');
  const from = realpathSync(log);
  cpSync(from, to, { recursive: true });
  rmSync(log, { recursive: true });
  if (from !== log) rmSync(from, { recursive: true });
  symlinkSync(to, log);
  await start(port);
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'sluice-disk-'));
  disk = mountSmallDisk(path.join(folder, 'data'), DISK_MEGABYTES);
  logDisk = mountSmallDisk(path.join(folder, 'log'), LOG_DISK_MEGABYTES);
  await start(0);
  pool = createPool({ url: postgres.url, size: 2, name: 'test' });
  pool.on('error', () => undefined);
  api = await programs.ready(
    await programs.startApi({
      DATABASE_URL: postgres.url,
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      SLUICE_LOG_LEVEL: 'fatal',
    }),
  );
});
afterEach(() => load?.abandon());
afterAll(async () => {
  await pool?.end();
  for (const one of [disk, logDisk]) one?.free();
  await postgres?.stop();
  for (const one of [disk, logDisk]) one?.unmount();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

onSmallDisk(`a full disk${whySkipped}`, () => {
  test('under the tables: refusals, and all goes on by itself when there is room again', async () => {
    await moveLog(path.join(folder, 'wal'));
    const tenant = await createTenant(pool, 'Tables');
    load = startLoad({ url: api.url, token: tenant.projectToken, clients: 16, events: 20, padding: 2_000 });
    await load.progress(2_000);
    disk.fill();
    await load.until('503', 32);
    expect(await compare(pool, tenant.projectId, load)).toEqual(NOTHING_WRONG);
    disk.free();
    await load.progress(2_000);
    await load.finish();
    expect(load.wrong).toEqual([]);
    expect(await compare(pool, tenant.projectId, load)).toEqual(NOTHING_WRONG);
    expect(load.acknowledged.size).toBe(load.sent.size);
  });

  const long = LONG ? test : test.skip;
  long(
    'under the write-ahead log: Postgres ends, and has everything acknowledged when it runs again',
    async () => {
      await moveLog(path.join(logDisk.directory, 'wal'));
      const tenant = await createTenant(pool, 'Log');
      load = startLoad({ url: api.url, token: tenant.projectToken, clients: 16, events: 20, padding: 2_000 });
      await load.progress(2_000);
      logDisk.fill();
      await load.until('503', 32);
      const postgresLog = readFileSync(path.join(disk.directory, 'logs', 'postgres.log'), 'utf8');
      expect(postgresLog).toMatch(/PANIC: .*"pg_wal\/.*No space left on device/);
      logDisk.free();
      // It ends for good when it finds no room to recover in; whoever keeps it running starts it again.
      const ended = await Promise.race([postgres.exited, load.progress(1).then(() => undefined)]);
      if (ended) await start(postgres.port);
      await load.progress(2_000);
      await load.finish();
      expect(load.wrong).toEqual([]);
      expect(await compare(pool, tenant.projectId, load)).toEqual(NOTHING_WRONG);
      expect(load.acknowledged.size).toBe(load.sent.size);
    },
  );
});
