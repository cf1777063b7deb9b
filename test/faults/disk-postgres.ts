import { cpSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe } from '@jest/globals';
import { loadConfig } from '../../config.ts';
import { createPool, type Pool } from '../../db/pool.ts';
import { type Postgres, startPostgres } from '../../stack/postgres.ts';
import { mayMount, mountSmallDisk, type SmallDisk } from './small-disk.ts';

const DISK_MEGABYTES = 700;
/** Little of it is for Postgres's own use, so that it is full soon. */
const SETTINGS = {
  shared_buffers: '32MB',
  min_wal_size: '32MB',
  max_wal_size: '64MB',
  checkpoint_timeout: '30s',
};

export const onSmallDisk = mayMount() ? describe : describe.skip;
export const whySkipped = onSmallDisk === describe ? '' : ' (skipped: this user may not mount a file system)';

/** Postgres on a small disk of its own. */
export interface DiskPostgres {
  /** A place on the machine's own disk. */
  folder: string;
  disk: SmallDisk;
  postgres: Postgres;
  pool: Pool;
  start(port: number): Promise<void>;
  /** A further small disk. */
  mount(name: string, megabytes: number): SmallDisk;
  /** Moves the write-ahead log to another disk; Postgres is started again over it. */
  moveLog(to: string): Promise<void>;
}

/** Starts it for the tests of a file. Its disks have room again before it stops. */
export function diskPostgresForFile(): DiskPostgres {
  const disks: SmallDisk[] = [];
  const world = {
    mount(name: string, megabytes: number) {
      const disk = mountSmallDisk(path.join(world.folder, name), megabytes);
      disks.push(disk);
      return disk;
    },
    async start(port: number) {
      const { SLUICE_CACHE_DIR: cacheDir } = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR });
      world.postgres = await startPostgres({
        ...{ dataDir: world.disk.directory, cacheDir, port, settings: SETTINGS },
      });
    },
    async moveLog(to: string) {
      const { port } = world.postgres;
      await world.postgres.stop();
      const log = path.join(world.disk.directory, 'postgres', 'pg_wal');
      const from = realpathSync(log);
      cpSync(from, to, { recursive: true });
      rmSync(log, { recursive: true });
      if (from !== log) rmSync(from, { recursive: true });
      symlinkSync(to, log);
      await world.start(port);
    },
  } as DiskPostgres;
  beforeAll(async () => {
    world.folder = mkdtempSync(path.join(tmpdir(), 'sluice-disk-'));
    world.disk = world.mount('data', DISK_MEGABYTES);
    await world.start(0);
    world.pool = createPool({ url: world.postgres.url, size: 2, name: 'test' });
    world.pool.on('error', () => undefined);
  });
  afterAll(async () => {
    await world.pool?.end();
    for (const disk of disks) disk.free();
    await world.postgres?.stop();
    for (const disk of disks) disk.unmount();
    if (world.folder) rmSync(world.folder, { recursive: true, force: true });
  });
  return world;
}
