import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { loadConfig } from '../../config.ts';

export const CLIENTS = path.join(import.meta.dirname, 'clients');
const PATIENCE = 45_000;

export interface ProgramResult {
  code: number | null;
  output: string;
}

/** Runs a program to its end, and never longer than a while; its whole group ends with it. */
export function runProgram(
  command: string,
  args: string[],
  options: { env?: Record<string, string>; until?: Promise<unknown> } = {},
): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: CLIENTS,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '', ...options.env },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        output += chunk;
      });
    const stop = () => {
      try {
        process.kill(-(child.pid as number), 'SIGKILL');
      } catch {
        // It has ended by itself.
      }
    };
    const timer = setTimeout(stop, PATIENCE);
    void options.until?.then(stop);
    child.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.once('close', (code) => {
      clearTimeout(timer);
      resolve({ code, output });
    });
  });
}

export interface Availability {
  /** Where it is; undefined when the tests that need it are skipped. */
  found: string | undefined;
  reason: string;
}

/** A folder with this version of posthog-python, installed once into the cache that all checkouts share. */
export function findPythonClient(version: string): Availability {
  const python = spawnSync('python3', ['-m', 'pip', '--version'], { encoding: 'utf8' });
  if (python.status !== 0) return { found: undefined, reason: 'python3 with pip is not installed' };
  const cache = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
  const folder = path.join(cache, 'test-clients', `posthog-python-${version}`);
  if (existsSync(folder)) return { found: folder, reason: '' };
  const building = `${folder}.${process.pid}`;
  try {
    mkdirSync(path.dirname(folder), { recursive: true });
    const args = ['-m', 'pip', 'install', '--quiet', '--target', building, `posthog==${version}`];
    const installed = spawnSync('python3', args, { encoding: 'utf8', timeout: 120_000 });
    if (installed.status !== 0) {
      const why = installed.stderr?.trim().split('\n').at(-1) ?? 'no answer';
      return { found: undefined, reason: `posthog ${version} could not be installed: ${why}` };
    }
    if (!existsSync(folder)) renameSync(building, folder);
    return { found: folder, reason: '' };
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
}

export function findChromium(): Availability {
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    if (spawnSync(name, ['--version'], { encoding: 'utf8' }).status === 0) return { found: name, reason: '' };
  }
  return { found: undefined, reason: 'no Chromium is installed' };
}
