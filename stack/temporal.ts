import { execFile } from 'node:child_process';
import { mkdirSync, statSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { forgetProcess, recordProcess, stopLeftover } from './leftovers.ts';
import { freePort, requireFreePort, requireSpace, requireWritable } from './preflight.ts';
import { type Report, StackProblem } from './problem.ts';
import { logTail, type Service, type StopOptions, startService } from './process.ts';
import { findTemporal } from './temporal/binary.ts';
import { INTERRUPTED, watchDatabase } from './temporal/database-watch.ts';
import { keepHistories } from './temporal/histories.ts';

const execute = promisify(execFile);
const START_MILLISECONDS = 60_000;
const ASK_MILLISECONDS = 10_000;

export interface TemporalOptions {
  /** SLUICE_DATA_DIR; the database is `temporal/temporal.db` in it, the log `logs/temporal.log`. */
  dataDir: string;
  /** SLUICE_CACHE_DIR, for the program. */
  cacheDir: string;
  /** 0 takes any free port. */
  port: number;
  uiPort: number;
  /** Namespaces beyond `default`. */
  namespaces?: string[];
  /** Search attributes that all namespaces have from the beginning, such as `SluiceKind=Keyword`. */
  searchAttributes?: string[];
  /** How many days the histories of runs are kept. By default Temporal decides: one day. */
  keepDays?: number;
  report?: Report;
  /** Stops a running download or build. */
  signal?: AbortSignal;
}

export interface Temporal extends Service {
  address: string;
  port: number;
  uiUrl: string;
}

/** Starts a Temporal server with its UI on the loopback interface and waits until it serves requests. */
export async function startTemporal(options: TemporalOptions): Promise<Temporal> {
  const report = options.report ?? (() => undefined);
  requireWritable(options.dataDir, 'SLUICE_DATA_DIR');
  requireSpace(options.dataDir, 'SLUICE_DATA_DIR');
  const { cacheDir, signal } = options;
  const program = await findTemporal({ cacheDir, report, ...(signal && { signal }) });

  const folder = path.join(options.dataDir, 'temporal');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  await stopLeftover(options.dataDir, 'Temporal', report);
  const port = options.port === 0 ? await freePort() : options.port;
  const uiPort = options.uiPort === 0 ? await freePort() : options.uiPort;
  await requireFreePort(port, 'SLUICE_TEMPORAL_PORT');
  await requireFreePort(uiPort, 'SLUICE_TEMPORAL_UI_PORT');

  const logFile = path.join(options.dataDir, 'logs', 'temporal.log');
  const logStart = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  const namespaces = ['default', ...(options.namespaces ?? [])];
  const service = await startService(
    {
      command: program,
      args: [
        ...['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), '--ui-port', String(uiPort)],
        ...['--db-filename', path.join(folder, 'temporal.db')],
        // Four times the workflow rate of the defaults. The database still survives a kill at any moment.
        ...['--sqlite-pragma', 'journal_mode=wal', '--sqlite-pragma', 'synchronous=normal'],
        ...['--log-level', 'warn', '--log-format', 'json'],
        ...namespaces.flatMap((name) => ['--namespace', name]),
        ...(options.searchAttributes ?? []).flatMap((one) => ['--search-attribute', one]),
      ],
      env: environment(),
      logFile,
    },
    [
      { signal: 'SIGTERM', milliseconds: 4_000 },
      { signal: 'SIGKILL', milliseconds: 1_000 },
    ],
  );
  const address = `127.0.0.1:${port}`;
  try {
    recordProcess(options.dataDir, 'Temporal', service.pid);
    const lastWords = () => logTail(logFile, logStart) || '(none)';
    await waitForTemporal({ service, program, address, namespaces, report, lastWords, signal });
  } catch (error) {
    await service.stop();
    forgetProcess(options.dataDir, 'Temporal');
    throw error;
  }
  watchDatabase({ service, logFile, report, isInterrupted: () => isInterrupted(program, address) });
  if (options.keepDays !== undefined) {
    const ask = (...args: string[]) => askTemporal(program, address, args);
    keepHistories({ service, ask, namespaces, days: options.keepDays, directory: folder, report });
  }
  const stop = async (how?: StopOptions) => {
    await service.stop(how);
    forgetProcess(options.dataDir, 'Temporal');
  };
  return { ...service, stop, address, port, uiUrl: `http://localhost:${uiPort}` };
}

/**
 * The environment of the embedded server, without TEMPORAL_* variables. They are settings of Sluice, but the Temporal
 * program would read them too.
 */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TEMPORAL_')));
}

/** Whether Temporal cannot tell of a namespace, because its database is interrupted. */
async function isInterrupted(program: string, address: string): Promise<boolean> {
  const args = ['operator', 'namespace', 'describe', '--namespace', 'default', '--address', address];
  return execute(program, args, { env: environment(), timeout: ASK_MILLISECONDS }).then(
    () => false,
    ({ stdout, stderr }: { stdout?: string; stderr?: string }) => `${stdout}${stderr}`.includes(INTERRUPTED),
  );
}

/** Runs the program of Temporal against a server. Undefined: it failed. */
export const askTemporal = (program: string, address: string, args: string[]): Promise<string | undefined> =>
  execute(program, [...args, '--address', address], { env: environment(), timeout: ASK_MILLISECONDS }).then(
    ({ stdout }) => stdout,
    () => undefined,
  );

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

interface Waiting {
  service: Service;
  program: string;
  address: string;
  namespaces: string[];
  report: Report;
  lastWords: () => string;
  signal: AbortSignal | undefined;
}

async function waitForTemporal(waiting: Waiting): Promise<void> {
  const { service, program, address, namespaces, report, lastWords } = waiting;
  const ask = (...args: string[]) => askTemporal(program, address, args);
  let exited = false;
  void service.exited.then(() => {
    exited = true;
  });
  const port = Number(address.split(':')[1]);
  const began = Date.now();
  let nextLine = began + 2_000;
  for (;;) {
    waiting.signal?.throwIfAborted();
    if (exited) {
      throw new StackProblem(`Temporal ended during its start. The last lines of its log:\n  ${lastWords()}`);
    }
    // The gRPC port opens before the services are ready. Temporal registers the namespaces last.
    if (
      (await accepts(port)) &&
      (await ask('operator', 'cluster', 'health'))?.includes('SERVING') &&
      (await ask('operator', 'namespace', 'describe', '--namespace', namespaces.at(-1) as string)) !==
        undefined
    ) {
      return;
    }
    if (Date.now() - began > START_MILLISECONDS) {
      throw new StackProblem(
        `Temporal did not become ready within ${START_MILLISECONDS / 1000} s. The last lines of its log:\n  ${lastWords()}`,
      );
    }
    if (Date.now() >= nextLine) {
      report('  waiting for Temporal …');
      nextLine = Date.now() + 3_000;
    }
    await pause(50);
  }
}
