import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { loadConfig } from '../../config.ts';

export interface Availability {
  /** Where it is; undefined when the tests that need it are skipped. */
  found: string | undefined;
  reason: string;
}

/** Fills a folder of the cache that all checkouts share, once. `command` returns what fills a folder. */
export function installed(name: string, command: (folder: string) => readonly string[]): Availability {
  const cache = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
  const folder = path.join(cache, 'test-clients', name);
  if (existsSync(folder)) return { found: folder, reason: '' };
  const building = `${folder}.${process.pid}`;
  try {
    mkdirSync(building, { recursive: true });
    const [program = '', ...args] = command(building);
    const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8', timeout: 300_000 });
    if (status !== 0) {
      const why = stderr?.trim().split('\n').at(-1) || error?.message || 'no answer';
      return { found: undefined, reason: `${name} could not be installed: ${why}` };
    }
    moveTo(folder, building);
    return { found: folder, reason: '' };
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
}

function moveTo(folder: string, filled: string): void {
  try {
    renameSync(filled, folder);
  } catch (error) {
    // Another process was faster.
    if (!existsSync(folder)) throw error;
  }
}
