import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';

/** Kept for the teardown, which runs in the same process. */
export interface TestRun {
  services?: ChildProcess;
}

interface Ready {
  stateDir: string;
  postgresUrl: string;
  reader: string;
  temporalAddress: string;
}

/**
 * One Postgres and one Temporal for the whole run, their addresses in the environment of the test processes.
 * `TEST_NO_SERVICES=1` leaves them out, for tests that need neither.
 */
export default async function globalSetup(): Promise<void> {
  if (process.env.TEST_NO_SERVICES === '1') return;
  const services = spawn(
    process.execPath,
    [path.join(import.meta.dirname, 'services.ts')],
    // Detached: ctrl-C in the terminal must not reach the servers before the tests are over.
    { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], detached: true },
  );
  (globalThis as { testRun?: TestRun }).testRun = { services };
  const ready = await new Promise<Ready>((resolve, reject) => {
    services.once('message', (message) => resolve(message as Ready));
    services.once('error', reject);
    services.once('exit', () =>
      reject(new Error('The test servers could not be started; the reason stands above.')),
    );
  });
  process.env.TEST_STATE_DIR = ready.stateDir;
  process.env.TEST_POSTGRES_URL = ready.postgresUrl;
  process.env.TEST_POSTGRES_READER = ready.reader;
  process.env.TEST_TEMPORAL_ADDRESS = ready.temporalAddress;
  // Tests start many processes of Sluice; each takes what an earlier one compiled.
  process.env.NODE_COMPILE_CACHE ??= path.join(ready.stateDir, 'compile-cache');
}
