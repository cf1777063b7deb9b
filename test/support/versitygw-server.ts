import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type GoProgram, goBuilt } from './go-built.ts';
import { type ServerProcess, startServer } from './server-process.ts';

const VERSITYGW: GoProgram = {
  name: 'versitygw',
  version: '1.8.0',
  module: 'github.com/versity/versitygw/cmd/versitygw',
  what: 'the S3 server of tests and benchmarks',
  trial: ['--version'],
};

export const CREDENTIALS = { accessKeyId: 'test-access-key', secretAccessKey: 'test-secret-key-9d2f' };

export interface RunningVersitygw extends ServerProcess {
  endpoint: string;
}

/** A server with a directory of its own; both are gone when it is stopped, or when this process ends. */
export async function startVersitygw(port: number): Promise<RunningVersitygw> {
  const program = await goBuilt(VERSITYGW);
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-test-s3-'));
  mkdirSync(path.join(folder, 'data'));
  const listen = ['--port', `127.0.0.1:${port}`, '--quiet', '--keep-alive'];
  const endpoint = `http://127.0.0.1:${port}`;
  const running = await startServer({
    command: [program, ...listen, 'posix', `${folder}/data`],
    env: { ROOT_ACCESS_KEY: CREDENTIALS.accessKeyId, ROOT_SECRET_KEY: CREDENTIALS.secretAccessKey },
    url: endpoint,
    folder,
  });
  return { endpoint, ...running };
}
