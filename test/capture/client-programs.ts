import { spawn, spawnSync } from 'node:child_process';
import path from 'node:path';
import { packagedChromium } from '../support/packaged-chromium.ts';
import { type Availability, findPythonPackages } from '../support/python-packages.ts';

export const CLIENTS = path.join(import.meta.dirname, 'clients');
const PATIENCE = 150_000;

export interface ProgramResult {
  code: number | null;
  output: string;
}

/** Runs a program to its end, and never longer than a while; its whole group ends with it. */
export function runProgram(
  command: string,
  args: string[],
  options: { env?: Record<string, string>; until?: Promise<unknown>; patience?: number } = {},
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
    const timer = setTimeout(stop, options.patience ?? PATIENCE);
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

/** posthog-python of this version, with what it needs for one of its extras. */
export const findPythonClient = (version: string, extra?: string): Availability =>
  extra === undefined
    ? findPythonPackages(`posthog-python-${version}`, [`posthog==${version}`])
    : findPythonPackages(`posthog-python-${version}-${extra}`, [`posthog[${extra}]==${version}`]);

/** The browser of the machine, or else the one that comes with the development tools. */
export function findChromium(): Availability {
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    if (spawnSync(name, ['--version'], { encoding: 'utf8' }).status === 0) return { found: name, reason: '' };
  }
  return { found: packagedChromium(), reason: 'no Chromium is installed' };
}
