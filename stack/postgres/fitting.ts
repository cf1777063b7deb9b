import { readdirSync, statfsSync, statSync } from 'node:fs';
import path from 'node:path';
import { machineMemory } from '../../telemetry/machine-memory.ts';

const MB = 1024 ** 2;
const GB = 1024 ** 3;

/** What a machine has for Postgres, in bytes. */
export interface Room {
  memory: number;
  /** What Postgres's log may grow into: the free space, and what the log takes now. */
  disk: number;
}

function bytesIn(directory: string): number {
  try {
    return readdirSync(directory)
      .map((name) => statSync(path.join(directory, name), { throwIfNoEntry: false })?.size ?? 0)
      .reduce((sum, size) => sum + size, 0);
  } catch {
    // The cluster is new.
    return 0;
  }
}

/** The room for a Postgres in this data directory, which counts on this memory if it is given. */
export function roomFor(dataDir: string, memoryMb?: number): Room {
  const { bavail, bsize } = statfsSync(dataDir);
  return {
    memory: memoryMb === undefined ? machineMemory() : memoryMb * MB,
    disk: bavail * bsize + bytesIn(path.join(dataDir, 'postgres', 'pg_wal')),
  };
}

const between = (low: number, value: number, high: number) => Math.max(low, Math.min(value, high));
const inMegabytes = (bytes: number) => `${Math.floor(bytes / MB)}MB`;

/**
 * Settings of Postgres that fit its machine. Large tables, above all the ledger of the ids that were seen, are written at
 * random places. Where their pages stay in memory, and are written whole into the log seldom, capture stays as quick as
 * with small tables (see docs/operations.md).
 */
export function settingsThatFit({ memory, disk }: Room): Record<string, string> {
  const log = between(256 * MB, disk / 4, 16 * GB);
  return {
    shared_buffers: inMegabytes(between(128 * MB, memory / 4, 16 * GB)),
    // What the planner believes to be in memory, with the pages that the operating system keeps.
    effective_cache_size: inMegabytes(Math.max(256 * MB, (memory * 3) / 4)),
    maintenance_work_mem: inMegabytes(between(64 * MB, memory / 32, 512 * MB)),
    min_wal_size: inMegabytes(between(80 * MB, log / 8, GB)),
    max_wal_size: inMegabytes(log),
    // So that under load the size of the log decides when a checkpoint is made.
    checkpoint_timeout: '15min',
  };
}
