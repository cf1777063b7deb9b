import { mkdtempSync } from 'node:fs';
import path from 'node:path';
import { loadConfig } from '../../config.ts';
import { DATA_DIRS } from './names.ts';

/** The cache of binaries that the machine's Sluice uses, so that a test run downloads and builds nothing. */
export const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;

/**
 * An empty data directory with spaces in its path, below one that only the current user may enter. Servers started
 * in it end, and it is removed, with the run at the latest.
 */
export function makeDataDir(): string {
  const stateDir = process.env.TEST_STATE_DIR;
  if (!stateDir)
    throw new Error('This test starts servers, but the run was started with TEST_NO_SERVICES=1.');
  return mkdtempSync(path.join(stateDir, DATA_DIRS, 'a b-'));
}
