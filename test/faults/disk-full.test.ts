import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { createTenant } from '../support/api.ts';
import { type ApiProgram, programsForFile } from '../support/programs.ts';
import { LONG } from '../support/rounds.ts';
import { compare, type Load, NOTHING_WRONG, startLoad } from './capture-load.ts';
import { diskPostgresForFile, onSmallDisk, whySkipped } from './disk-postgres.ts';

const LOG_DISK_MEGABYTES = 200;

if (LONG) jest.setTimeout(300_000);

let api: ApiProgram;
let load: Load | undefined;
const programs = programsForFile();
const world = diskPostgresForFile();
beforeAll(async () => {
  api = await programs.ready(
    await programs.startApi({
      DATABASE_URL: world.postgres.url,
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      SLUICE_LOG_LEVEL: 'fatal',
    }),
  );
});
afterEach(() => load?.abandon());

onSmallDisk(`a full disk${whySkipped}`, () => {
  test('under the tables: refusals, and all goes on by itself when there is room again', async () => {
    await world.moveLog(path.join(world.folder, 'wal'));
    const tenant = await createTenant(world.pool, 'Tables');
    load = startLoad({ url: api.url, token: tenant.projectToken, clients: 16, events: 20, padding: 2_000 });
    await load.progress(2_000);
    world.disk.fill();
    await load.until('503', 32);
    expect(await compare(world.pool, tenant.projectId, load)).toEqual(NOTHING_WRONG);
    world.disk.free();
    await load.progress(2_000);
    await load.finish();
    expect(load.wrong).toEqual([]);
    expect(await compare(world.pool, tenant.projectId, load)).toEqual(NOTHING_WRONG);
    expect(load.acknowledged.size).toBe(load.sent.size);
  });

  const long = LONG ? test : test.skip;
  long(
    'under the write-ahead log: Postgres ends, and has everything acknowledged when it runs again',
    async () => {
      const logDisk = world.mount('log', LOG_DISK_MEGABYTES);
      await world.moveLog(path.join(logDisk.directory, 'wal'));
      const tenant = await createTenant(world.pool, 'Log');
      load = startLoad({ url: api.url, token: tenant.projectToken, clients: 16, events: 20, padding: 2_000 });
      await load.progress(2_000);
      logDisk.fill();
      await load.until('503', 32);
      const postgresLog = readFileSync(path.join(world.disk.directory, 'logs', 'postgres.log'), 'utf8');
      expect(postgresLog).toMatch(/PANIC: .*"pg_wal\/.*No space left on device/);
      logDisk.free();
      // It ends for good when it finds no room to recover in; whoever keeps it running starts it again.
      const ended = await Promise.race([world.postgres.exited, load.progress(1).then(() => undefined)]);
      if (ended) await world.start(world.postgres.port);
      await load.progress(2_000);
      await load.finish();
      expect(load.wrong).toEqual([]);
      expect(await compare(world.pool, tenant.projectId, load)).toEqual(NOTHING_WRONG);
      expect(load.acknowledged.size).toBe(load.sent.size);
    },
  );
});
