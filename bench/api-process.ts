import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const root = path.resolve(import.meta.dirname, '..');
const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));

/** The options with which the script `api` starts Node. */
export const API_OPTIONS = (scripts.api as string).split(' ').filter((word) => word.startsWith('--'));

export async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Waits until the API on this port listens, and is ready. */
export async function ready(port: number): Promise<void> {
  const status = () => fetch(`http://127.0.0.1:${port}/_readyz`).then((answer) => answer.status, String);
  while ((await status()) !== 200) await pause(50);
}

export interface ApiProcess {
  port: number;
  pid: number;
}

/** What an API is started with. */
export interface ApiStart {
  databaseUrl: string;
  /** It keeps its copies in a folder of its own below this. */
  stateDir: string;
  /** It is added to these, which whoever starts it ends. */
  children: ChildProcess[];
  env?: NodeJS.ProcessEnv;
  /** Another checkout with its dependencies, whose API is started instead. */
  folder?: string | undefined;
  /** Further options of Node. */
  options?: readonly string[];
}

/** Starts the API as it ships, without Temporal, and waits until it is ready. */
export async function startApi(start: ApiStart): Promise<ApiProcess> {
  const { databaseUrl, stateDir, children, env = {}, folder = root, options = [] } = start;
  const port = await freePort();
  const child = spawn(process.execPath, [...API_OPTIONS, ...options, path.join(folder, 'api/main.ts')], {
    env: {
      ...process.env,
      ...{ NODE_ENV: 'production', PORT: String(port), SLUICE_HOST: '127.0.0.1' },
      ...{ SLUICE_DATA_DIR: path.join(stateDir, String(port)), SLUICE_LOG_LEVEL: 'error' },
      ...{ TEMPORAL_ADDRESS: '127.0.0.1:1', DATABASE_URL: databaseUrl },
      ...env,
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  children.push(child);
  await ready(port);
  return { port, pid: child.pid as number };
}
