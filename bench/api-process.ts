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
