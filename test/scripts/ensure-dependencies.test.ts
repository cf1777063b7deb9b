import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from '@jest/globals';

const SCRIPT = path.resolve('scripts/ensure-dependencies.mjs');
let root: string;

// A checkout that needs no packages, so npm has nothing to fetch.
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'sluice-dependencies-'));
  await mkdir(path.join(root, 'scripts'));
  await mkdir(path.join(root, 'node_modules'));
  await copyFile(SCRIPT, path.join(root, 'scripts/ensure-dependencies.mjs'));
  const named = { name: 'empty', version: '1.0.0' };
  await writeFile(path.join(root, 'package.json'), JSON.stringify(named));
  const lock = { ...named, lockfileVersion: 3, requires: true, packages: { '': named } };
  await writeFile(path.join(root, 'package-lock.json'), JSON.stringify(lock));
});

afterEach(() => rm(root, { recursive: true, force: true }));

/** Runs the script, and answers whether it installed something. */
async function installs(environment: string): Promise<boolean> {
  const env = { ...process.env, NODE_ENV: environment };
  const script = path.join(root, 'scripts/ensure-dependencies.mjs');
  const { stderr } = await promisify(execFile)(process.execPath, [script], { env });
  return stderr.includes('Dependencies installed');
}

test('a command in production leaves what is installed for development', async () => {
  expect(await installs('development')).toBe(true);
  expect(await installs('production')).toBe(false);
  expect(await installs('development')).toBe(false);
});

test('what is installed for production does not serve development', async () => {
  expect(await installs('production')).toBe(true);
  expect(await installs('production')).toBe(false);
  expect(await installs('development')).toBe(true);
});
