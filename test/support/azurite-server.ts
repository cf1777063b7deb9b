import path from 'node:path';
import { installed } from './installed.ts';
import { type ServerProcess, startServer } from './server-process.ts';

/** The account of the emulator, whose key protects nothing. */
export const ACCOUNT = {
  name: 'sluicetest',
  key: Buffer.from('the key of an account in tests').toString('base64'),
};

export interface RunningAzurite extends ServerProcess {
  /** The URL of the blob service. */
  endpoint: string;
}

const VERSION = '3.37.0';

/** It needs some 280 packages, so it is no dependency of the project. */
function findAzurite(): string {
  const npm = ['npm', 'install', '--no-audit', '--no-fund', '--loglevel=error', '--prefix'];
  const name = `azurite-${VERSION}`;
  const { found, reason } = installed(name, (folder) => [...npm, folder, `azurite@${VERSION}`]);
  if (!found) throw new Error(reason);
  return path.join(found, 'node_modules/azurite/dist/src/blob/main.js');
}

/** The server of Azurite as a process of its own, which keeps everything in memory. */
export async function startAzurite(port: number): Promise<RunningAzurite> {
  const program = findAzurite();
  const options = ['--inMemoryPersistence', '--silent', '--disableTelemetry', '--skipApiVersionCheck'];
  const listen = ['--blobHost', '127.0.0.1', '--blobPort', String(port), '--disableProductStyleUrl'];
  const url = `http://127.0.0.1:${port}`;
  const running = await startServer({
    command: [process.execPath, program, ...options, ...listen],
    env: { AZURITE_ACCOUNTS: `${ACCOUNT.name}:${ACCOUNT.key}` },
    url,
  });
  return { endpoint: `${url}/${ACCOUNT.name}`, ...running };
}
