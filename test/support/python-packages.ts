import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { loadConfig } from '../../config.ts';

export interface Availability {
  /** Where it is; undefined when the tests that need it are skipped. */
  found: string | undefined;
  reason: string;
}

/** A folder with these packages (`name==version`), installed once into the cache that all checkouts share. */
export function findPythonPackages(name: string, requirements: readonly string[]): Availability {
  const python = spawnSync('python3', ['-m', 'pip', '--version'], { encoding: 'utf8' });
  if (python.status !== 0) return { found: undefined, reason: 'python3 with pip is not installed' };
  const cache = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
  const folder = path.join(cache, 'test-clients', name);
  if (existsSync(folder)) return { found: folder, reason: '' };
  const building = `${folder}.${process.pid}`;
  try {
    mkdirSync(path.dirname(folder), { recursive: true });
    const args = ['-m', 'pip', 'install', '--quiet', '--target', building, ...requirements];
    const installed = spawnSync('python3', args, { encoding: 'utf8', timeout: 300_000 });
    if (installed.status !== 0) {
      const why = installed.stderr?.trim().split('\n').at(-1) ?? 'no answer';
      return { found: undefined, reason: `${requirements.join(', ')} could not be installed: ${why}` };
    }
    if (!existsSync(folder)) renameSync(building, folder);
    return { found: folder, reason: '' };
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
}
