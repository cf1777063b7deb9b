import { existsSync, statSync } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { closeDataDir, OWNER_ONLY } from './owner-only.ts';
import { postgresBinaries } from './postgres/binaries.ts';
import {
  clearLeftovers,
  createCluster,
  POSTGRES_ENV,
  readPassword,
  requireVersion,
  writeSettings,
} from './postgres/cluster.ts';
import { roomFor, settingsThatFit } from './postgres/fitting.ts';
import { chooseRunAs, invocation } from './postgres/run-as.ts';
import { freePort, requireFreePort, requireSpace, requireWritable } from './preflight.ts';
import { type Report, StackProblem } from './problem.ts';
import { logTail, type Service, startService } from './process.ts';

export interface PostgresOptions {
  /** SLUICE_DATA_DIR; the cluster is `postgres` in it, the log `logs/postgres.log`. */
  dataDir: string;
  /** SLUICE_CACHE_DIR, for the binaries. */
  cacheDir: string;
  /** 0 takes any free port. */
  port: number;
  /** Created if it is missing. */
  database?: string;
  /** The memory that Postgres counts on, in MiB. By default that of the machine. */
  memoryMb?: number | undefined;
  /** More settings for postgresql.conf. They override Sluice's own. */
  settings?: Record<string, string>;
  report?: Report;
  /** Stops the wait for a server that takes long to recover. */
  signal?: AbortSignal;
  /** Does not use user namespaces. Tests use it to behave like a machine without them. */
  withoutNamespace?: boolean;
}

export interface Postgres extends Service {
  url: string;
  port: number;
}

/** Settings for every machine; `settingsThatFit` has the others. Durability stays at the defaults of Postgres. */
const SETTINGS: Record<string, string> = {
  max_connections: '200',
  random_page_cost: '1.1',
  fsync: 'on',
  synchronous_commit: 'on',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_line_prefix: '%m [%p] ',
  log_checkpoints: 'off',
};

/** Starts a Postgres on the loopback interface and waits until it accepts queries. */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const report = options.report ?? (() => undefined);
  requireWritable(options.dataDir, 'SLUICE_DATA_DIR');
  requireSpace(options.dataDir, 'SLUICE_DATA_DIR');
  const binaries = await postgresBinaries(options.cacheDir);
  // clearLeftovers compares this directory with the one that Postgres reports, which has no symbolic links.
  const dataDir = await realpath(options.dataDir);
  const cluster = path.join(dataDir, 'postgres');
  const program = path.join(binaries.home, 'bin', 'postgres');
  const { withoutNamespace = false } = options;
  const runAs = await chooseRunAs({ program, dataDir, cluster, withoutNamespace });
  const fitting = settingsThatFit(roomFor(dataDir, options.memoryMb));
  const settings = { ...SETTINGS, ...fitting, ...options.settings };

  if (existsSync(cluster)) {
    requireVersion(cluster, binaries.major);
    await clearLeftovers(cluster, report);
  } else {
    report('Creating the Postgres database …');
    await createCluster(cluster, binaries, runAs, settings.fsync !== 'off');
  }
  const port = options.port === 0 ? await freePort() : options.port;
  await requireFreePort(port, 'SLUICE_POSTGRES_PORT');
  await writeSettings(cluster, settings, runAs);
  closeDataDir(dataDir, runAs.kind === 'account');
  const password = await readPassword(cluster);

  const logs = path.join(dataDir, 'logs');
  await mkdir(logs, { recursive: true, mode: OWNER_ONLY });
  const logFile = path.join(logs, 'postgres.log');
  const logStart = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  // Creating the database takes a while. The user may have stopped the start in the meantime.
  options.signal?.throwIfAborted();
  const service = await startService(
    {
      ...invocation(runAs, program, [
        ...['-D', cluster],
        // As arguments, so that ALTER SYSTEM cannot change where it listens. No unix socket: its path may be too long.
        ...['-c', 'listen_addresses=127.0.0.1', '-c', `port=${port}`, '-c', 'unix_socket_directories='],
      ]),
      env: POSTGRES_ENV,
      cwd: dataDir,
      logFile,
    },
    // SIGINT is Postgres's fast shutdown, SIGQUIT its immediate one, after which the next start recovers.
    [
      { signal: 'SIGINT', milliseconds: 6_000 },
      { signal: 'SIGQUIT', milliseconds: 2_000 },
      { signal: 'SIGKILL', milliseconds: 1_000 },
    ],
  );
  const urlOf = (database: string) => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
  try {
    const lastWords = () => logTail(logFile, logStart) || '(none)';
    await waitForPostgres({ service, url: urlOf('postgres'), report, lastWords, signal: options.signal });
    const database = options.database ?? 'sluice';
    await ensureDatabase(urlOf('postgres'), database);
    return { ...service, port, url: urlOf(database) };
  } catch (error) {
    await service.stop();
    throw error;
  }
}

interface Waiting {
  service: Pick<Service, 'exited'>;
  url: string;
  report: Report;
  lastWords: () => string;
  signal: AbortSignal | undefined;
}

/** Waits until Postgres accepts connections. There is no time limit, because recovery after a crash may take long. */
export async function waitForPostgres(waiting: Waiting): Promise<void> {
  const { service, url, report, lastWords } = waiting;
  let exited = false;
  void service.exited.then(() => {
    exited = true;
  });
  let nextLine = Date.now() + 2_000;
  for (;;) {
    waiting.signal?.throwIfAborted();
    if (exited) {
      throw new StackProblem(`Postgres ended during its start. The last lines of its log:\n  ${lastWords()}`);
    }
    const failure = await tryToConnect(url);
    if (!failure) return;
    if (!mayPass(failure)) {
      throw new StackProblem(
        `The embedded Postgres does not accept Sluice's connection: ${failure.message}.`,
        {
          cause: failure,
        },
      );
    }
    if (Date.now() >= nextLine) {
      report(`  waiting for Postgres (${whyWaiting(failure)}) …`);
      nextLine = Date.now() + 3_000;
    }
    await pause(30);
  }
}

type ConnectFailure = Error & { code?: string };

/** Whether nobody answered in time, or the answer broke off. While recovery keeps the disk busy, it takes long. */
const isSilent = ({ code, message }: ConnectFailure) =>
  code === undefined && /timeout|terminated/i.test(message);

/** 57P03 means that Postgres starts up or recovers. Any other answer is an error. */
const mayPass = (failure: ConnectFailure) =>
  isSilent(failure) || ['ECONNREFUSED', 'ECONNRESET', '57P03'].includes(failure.code ?? '');

function whyWaiting(failure: ConnectFailure): string {
  if (isSilent(failure)) return 'it does not answer yet';
  return failure.code === '57P03' ? failure.message : 'not listening yet';
}

async function tryToConnect(url: string): Promise<ConnectFailure | undefined> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return undefined;
  } catch (error) {
    return error as Error;
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function ensureDatabase(url: string, database: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [database]);
    if (rowCount === 0) await client.query(`create database ${client.escapeIdentifier(database)}`);
  } finally {
    await client.end();
  }
}
