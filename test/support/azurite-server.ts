import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { eventually } from './eventually.ts';
import { installed } from './installed.ts';

/** The account of the emulator, whose key protects nothing. */
export const ACCOUNT = {
  name: 'sluicetest',
  key: Buffer.from('the key of an account in tests').toString('base64'),
};

export interface RunningAzurite {
  /** The URL of the blob service. */
  endpoint: string;
  pid: number;
  stop(): Promise<void>;
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
  // When the channel closes, however this process ended, the shell ends the server.
  const script =
    '"$@" >/dev/null & server=$!; echo $server; cat >/dev/null; exec 2>/dev/null; kill -9 $server; wait $server';
  const child = spawn('sh', ['-c', script, 'sh', process.execPath, program, ...options, ...listen], {
    env: { PATH: process.env.PATH, AZURITE_ACCOUNTS: `${ACCOUNT.name}:${ACCOUNT.key}` },
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const stop = async () => {
    const gone = child.exitCode === null ? once(child, 'exit') : undefined;
    child.stdin.end();
    await gone;
  };
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  await eventually(() =>
    fetch(`http://127.0.0.1:${port}`).then(
      () => true,
      () => {
        if (child.exitCode !== null) throw new Error('Azurite ended; what it said stands above');
        return false;
      },
    ),
  );
  return { endpoint: `http://127.0.0.1:${port}/${ACCOUNT.name}`, pid: Number(said), stop };
}
