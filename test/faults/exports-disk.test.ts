import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exportedUuids, exportWorldForFile, filesIn, fillHourInBulk, hourly } from '../exports/support.ts';
import { eventually } from '../support/eventually.ts';
import { mayMount, mountSmallDisk, type SmallDisk } from './small-disk.ts';

const EVENTS = 20_000;
const onSmallDisk = mayMount() ? describe : describe.skip;
const whySkipped = onSmallDisk === describe ? '' : ' (skipped: this user may not mount a file system)';
let folder: string;
let disk: SmallDisk | undefined;

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'sluice-disk-'));
  if (mayMount()) disk = mountSmallDisk(path.join(folder, 'exports'), 64);
});
afterAll(() => {
  disk?.unmount();
  rmSync(folder, { recursive: true, force: true });
});
const world = exportWorldForFile({
  settings: () => ({ SLUICE_EXPORT_ROOT: path.join(folder, 'exports') }),
  patience: { attempts: 2, delay: () => 20 },
});

onSmallDisk(`a full disk${whySkipped}`, () => {
  test('is waited for: no half a file, and the run goes on by itself when there is room', async () => {
    await fillHourInBulk(world.pool, 0, EVENTS);
    const full = disk as SmallDisk;
    const row = await world.create('File', { directory: 'events' });
    const place = path.join(full.directory, 'events');
    full.fill();
    const handle = await world.start(row, hourly(0));
    const run = await eventually(async () => {
      const [one] = await world.runsOf(row);
      return one?.latest_error ? one : undefined;
    });
    expect(run).toMatchObject({ status: 'Running' });
    expect(run.latest_error).toMatch(/no space is left on the disk/);
    expect(filesIn(place).filter((file) => !file.includes('.partial'))).toEqual([]);
    full.free();
    const done = await world.finished(handle);
    expect(done.run).toMatchObject({ status: 'Completed', records_completed: EVENTS, latest_error: null });
    expect(new Set(exportedUuids(place)).size).toBe(EVENTS);
    expect(filesIn(place)).toHaveLength(2);
  });
});
