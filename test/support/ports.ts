import { closeSync, mkdirSync, openSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';

/** Below what the system gives to outgoing connections, one of which could take a port between asking and using. */
const FIRST = 20_000;
const COUNT = 10_000;

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '0.0.0.0' }, () => server.close(() => resolve(true)));
  });
}

/** A port that nobody uses and that no other test of the run is given. */
export async function reservePort(): Promise<number> {
  const { TEST_STATE_DIR: stateDir } = process.env;
  if (!stateDir)
    throw new Error('Ports are given out by the run, but it was started with TEST_NO_SERVICES=1.');
  const claims = path.join(stateDir, 'ports');
  mkdirSync(claims, { recursive: true });
  const start = Math.floor(Math.random() * COUNT);
  for (let step = 0; step < COUNT; step += 1) {
    const port = FIRST + ((start + step) % COUNT);
    try {
      // Creating the file is the claim: of several test processes only one succeeds.
      closeSync(openSync(path.join(claims, String(port)), 'wx'));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      continue;
    }
    if (await isFree(port)) return port;
  }
  throw new Error(`No port between ${FIRST} and ${FIRST + COUNT} is free.`);
}
