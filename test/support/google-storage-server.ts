import { type GoProgram, goBuilt } from './go-built.ts';
import { type ServerProcess, startServer } from './server-process.ts';

const FAKE_GCS_SERVER: GoProgram = {
  name: 'fake-gcs-server',
  // The first one that minds the conditions of resumable and of simple uploads.
  version: '1.56.1',
  module: 'github.com/fsouza/fake-gcs-server',
  what: 'the Google Cloud Storage of tests and benchmarks',
  trial: ['-help'],
};

export interface RunningGoogleStorage extends ServerProcess {
  endpoint: string;
}

/** The emulator as a process of its own, which keeps everything in memory and asks for no credentials. */
export async function startGoogleStorage(port: number): Promise<RunningGoogleStorage> {
  const program = await goBuilt(FAKE_GCS_SERVER);
  const listen = ['-scheme', 'http', '-host', '127.0.0.1', '-port', String(port)];
  const endpoint = `http://127.0.0.1:${port}`;
  const running = await startServer({
    command: [program, ...listen, '-backend', 'memory', '-log-level', 'error'],
    url: endpoint,
  });
  return { endpoint, ...running };
}
