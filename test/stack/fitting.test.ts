import { describe, expect, test } from '@jest/globals';
import { roomFor, settingsThatFit } from '../../stack/postgres/fitting.ts';
import { makeDataDir } from '../support/data-dir.ts';

const GB = 1024 ** 3;
const megabytes = (value: string | undefined) => Number(/^(\d+)MB$/.exec(value ?? '')?.[1]);

describe('the settings of Postgres', () => {
  test.each([
    ['a server', { memory: 24 * GB, disk: 200 * GB }, 6144, 16_384],
    ['a large server', { memory: 512 * GB, disk: 4_000 * GB }, 16_384, 16_384],
    ['a small machine', { memory: 2 * GB, disk: 20 * GB }, 512, 5120],
    ['a container without much', { memory: GB / 4, disk: GB / 2 }, 128, 256],
  ])('fit %s', (_, room, buffers, log) => {
    const settings = settingsThatFit(room);
    expect([megabytes(settings.shared_buffers), megabytes(settings.max_wal_size)]).toEqual([buffers, log]);
    // Postgres refuses to start otherwise.
    expect(megabytes(settings.min_wal_size)).toBeLessThan(log);
    expect(megabytes(settings.min_wal_size)).toBeGreaterThanOrEqual(32);
  });

  test('come from the machine, or from the memory that is given', () => {
    const dataDir = makeDataDir();
    const { memory, disk } = roomFor(dataDir);
    expect(memory).toBeGreaterThan(GB / 4);
    expect(disk).toBeGreaterThan(0);
    expect(roomFor(dataDir, 1024).memory).toBe(GB);
  });
});
