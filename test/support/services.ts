// The servers of one test run, in a process of their own: it stops them and removes everything when the channel
// to jest closes, however jest ended. Started by global-setup.ts, which is told the directory of this run.
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { setUpDatabase } from '../../db/wait.ts';
import { registerSearchAttributes } from '../../schedules/search-attributes.ts';
import { tryLock } from '../../stack/file-lock.ts';
import { type Kept, keepRunning } from '../../stack/keeper.ts';
import { stopLeftover } from '../../stack/leftovers.ts';
import { clearLeftovers } from '../../stack/postgres/cluster.ts';
import { type Postgres, startPostgres } from '../../stack/postgres.ts';
import { StackProblem } from '../../stack/problem.ts';
import { processStart, stopOrphan } from '../../stack/process.ts';
import { startTemporal, type Temporal, type TemporalOptions } from '../../stack/temporal.ts';
import { workflowBundle } from '../../worker/workflow-bundle.ts';
import { searchAttributes } from '../../workflows/names.ts';
import { DATA_DIRS, TEMPLATE_DATABASE } from './names.ts';
import { firstNamespaces, offerNamespaces } from './namespaces.ts';
import { makeRunDir, takeKilledRuns } from './run-dir.ts';

/** The types of search attributes, as the program of Temporal names them. */
const TYPES: Record<string, string> = { KEYWORD: 'Keyword', INT: 'Int', DATETIME: 'Datetime' };

const stateDir = makeRunDir();
const report = (line: string) => void process.stderr.write(`${line}\n`);
let postgres: Postgres | undefined;
let temporal: Kept<Temporal> | undefined;
const building = new AbortController();

async function stop(): Promise<never> {
  building.abort();
  await Promise.all([postgres?.stop(), temporal?.stop()]);
  await removeRun(stateDir);
  process.exit();
}
process.once('disconnect', () => void stop());
// The terminal's ctrl-C is jest's business; the channel closes when jest ends.
process.on('SIGINT', () => undefined);

/** A test that started a whole Sluice was killed with it running; it stops its parts itself. */
async function stopSupervisor(dataDir: string): Promise<void> {
  const { lock, heldBy } = tryLock(path.join(dataDir, 'sluice.lock'));
  lock?.release();
  const started = heldBy === undefined || heldBy === process.pid ? undefined : processStart(heldBy);
  if (started === undefined) return;
  await stopOrphan(heldBy as number, started, [{ signal: 'SIGTERM', milliseconds: 15_000 }]);
}

/** Ends what a killed run or test left running, and removes its files. */
async function removeRun(runDir: string): Promise<void> {
  const dataDirs = path.join(runDir, DATA_DIRS);
  const inner = existsSync(dataDirs) ? readdirSync(dataDirs).map((name) => path.join(dataDirs, name)) : [];
  for (const dataDir of [runDir, ...inner]) {
    await stopSupervisor(dataDir);
    for (const name of ['API', 'worker', 'Temporal']) await stopLeftover(dataDir, name, report);
    await clearLeftovers(path.join(dataDir, 'postgres'), report);
  }
  rmSync(runDir, { recursive: true, force: true, maxRetries: 10 });
}

/** Clears runs that were killed together with their services process. */
async function clearKilledRuns(): Promise<void> {
  for (const left of takeKilledRuns()) await removeRun(left);
}

/** Makes a migrated database that nobody connects to, so that it can be cloned at any time. Returns the login of its reader. */
async function createTemplate(adminUrl: string): Promise<string> {
  const admin = new pg.Client({ connectionString: adminUrl });
  await admin.connect();
  await admin.query(`create database ${TEMPLATE_DATABASE}`);
  const url = new URL(adminUrl);
  url.pathname = `/${TEMPLATE_DATABASE}`;
  const { reader, wall } = await setUpDatabase({ url: url.href });
  if (!wall.up) throw new Error(`second wall off: ${wall.reason}`);
  await admin.query(`alter database ${TEMPLATE_DATABASE} is_template true allow_connections false`);
  await admin.end();
  const { username, password } = new URL(reader);
  return `${username}:${password}`;
}

/** Starts Temporal, and starts it again at the same address when it ends. */
function keepTemporal(
  common: Pick<TemporalOptions, 'dataDir' | 'cacheDir' | 'report' | 'signal'>,
): Promise<Kept<Temporal>> {
  let port = 0;
  const options = {
    ...{ ...common, uiPort: 0, namespaces: firstNamespaces() },
    searchAttributes: Object.values(searchAttributes).map(({ name, type }) => `${name}=${TYPES[type]}`),
  };
  const startHere = async () => {
    const started = await startTemporal({ ...options, port });
    port = started.port;
    return started;
  };
  const logFile = path.join(stateDir, 'logs', 'temporal.log');
  const giveUp = ({ message }: Error) => report(message);
  return keepRunning({ name: 'Temporal', start: startHere, logFile }, { report, giveUp });
}

/** Makes a namespace like those that Temporal has from its start. */
async function makeNamespace(connection: Connection, namespace: string): Promise<void> {
  await connection.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: msToTs('1 day'),
  });
  const { missing, reason } = await registerSearchAttributes(connection, namespace);
  if (missing.length > 0) throw new Error(`${namespace} lacks search attributes: ${reason}`);
}

async function start(): Promise<void> {
  await clearKilledRuns();
  const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
  mkdirSync(path.join(stateDir, DATA_DIRS));
  const common = { dataDir: stateDir, cacheDir, report, signal: building.signal };
  // Data that is thrown away need not survive a power failure, and there is little of it.
  const durability = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' };
  const settings = { ...durability, shared_buffers: '256MB', max_wal_size: '2GB' };
  const bundled = workflowBundle();
  [postgres, temporal] = await Promise.all([
    startPostgres({ ...common, port: 0, database: 'postgres', settings }),
    keepTemporal(common),
  ]);
  const reader = await createTemplate(postgres.url);
  // The workers of all tests load it.
  await bundled;
  const connection = await Connection.connect({ address: temporal.current.address });
  const make = (namespace: string) => makeNamespace(connection, namespace);
  offerNamespaces(stateDir, make, (error) =>
    report(`A Temporal namespace could not be made: ${error.message}`),
  );
  process.send?.({
    stateDir,
    postgresUrl: postgres.url,
    reader,
    temporalAddress: temporal.current.address,
  });
}

start().catch(async (error) => {
  report(error instanceof StackProblem ? error.message : String((error as Error).stack));
  process.exitCode = 1;
  await stop();
});
