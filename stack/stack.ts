import path from 'node:path';
import { keepingCompiled } from '../compiled.mjs';
import type { Config } from '../config.ts';
import { givenAddresses } from '../db/roles/address.ts';
import type { DatabaseRoles } from '../db/roles/roles.ts';
import { ensureKeyFile, keyFile } from '../secrets/key-file.ts';
import { forgetInstallation, recordInstallation } from './installation.ts';
import { type Kept, keepRunning } from './keeper.ts';
import { stopLeftover } from './leftovers.ts';
import { closeDataDir } from './owner-only.ts';
import { makePlan, type Plan, requirePorts } from './plan.ts';
import { clearLeftovers } from './postgres/cluster.ts';
import { startPostgres } from './postgres.ts';
import { requireSpace, requireWritable } from './preflight.ts';
import { type PreparedDatabase, prepareDatabase } from './prepare-database.ts';
import type { Report } from './problem.ts';
import type { Service, StopOptions } from './process.ts';
import { startProgram, waitForApi } from './program.ts';
import { startTemporal } from './temporal.ts';

const ROOT = path.dirname(import.meta.dirname);
/** The reason is in docs/ingestion.md, Memory. package.json (script `api`), Dockerfile and compose file have the same options. */
const API_NODE_OPTIONS = ['--max-semi-space-size=32', '--heap-growing-percent=100'];
/** All four parts together stop within ten seconds. Time that an earlier part does not use goes to the later ones. */
const STOP_MILLISECONDS = 9_000;
const API_STOP = 3_500;
const WORKER_STOP = 3_000;
const TEMPORAL_STOP = 2_000;
/** The worker waits for an external Temporal without a limit, but the start does not wait longer than this for the worker. */
const WORKER_READY = 20_000;

export interface StackOptions {
  config: Config;
  env: NodeJS.ProcessEnv;
  report: Report;
  /** Aborts the start. */
  signal: AbortSignal;
  /** Called when a part fails again and again. */
  giveUp: (error: Error) => void;
  /** The processes of Sluice itself. */
  programs?: { api: string; worker: string };
}

export interface Stack {
  plan: Plan;
  database: PreparedDatabase;
  workerIsReady: boolean;
}

/** Starts everything that `npm start` runs, in order, and stops it in the reverse order. */
export class StackRunner {
  private readonly options: StackOptions;
  private api: Kept<Service> | undefined;
  private worker: Kept<Service> | undefined;
  private temporal: Kept<Service> | undefined;
  private postgres: Kept<Service> | undefined;

  constructor(options: StackOptions) {
    this.options = options;
  }

  async start(): Promise<Stack> {
    const { config, env, report, signal } = this.options;
    const dataDir = config.SLUICE_DATA_DIR;
    requireWritable(dataDir, 'SLUICE_DATA_DIR');
    requireSpace(dataDir, 'SLUICE_DATA_DIR');
    await this.clear(dataDir);
    // With its own Postgres, `startPostgres` does this, once it knows which account must pass.
    if (config.DATABASE_URL) closeDataDir(dataDir);
    const plan = await makePlan(config, env);
    await requirePorts(plan, config.SLUICE_HOST);
    recordInstallation(plan, env);

    const [databaseUrl] = await this.startServers(plan);
    signal.throwIfAborted();
    report('Preparing the database …');
    const database = await prepareDatabase({
      database: givenAddresses(databaseUrl, plan.ownPostgres ? {} : config),
      dataDir,
      addresses: { base_url: plan.baseUrl, temporal_ui_url: plan.temporalUiUrl },
      external: !plan.ownPostgres,
      mayMigrate: config.SLUICE_MIGRATE,
      report,
    });
    signal.throwIfAborted();

    const childEnv = this.childEnv(plan, database.roles);
    report(`Starting the API on port ${plan.ports.api} and the worker …`);
    const [, workerIsReady] = await allOrNothing<[unknown, boolean]>(
      signal,
      (either) => this.startApi(plan, childEnv, either),
      (either) => this.startWorker(plan, childEnv, either),
    );
    return { plan, database, workerIsReady };
  }

  /** Stops all running parts: those that use other parts first. `hurry` skips the waiting. */
  async stop(hurry: AbortSignal): Promise<void> {
    const end = Date.now() + STOP_MILLISECONDS;
    const stopPart = async (part: Kept<Service> | undefined, within: number) => {
      if (!part) return;
      const how: StopOptions = { within: Math.max(200, Math.min(within, end - Date.now())), hurry };
      await part.stop(how);
      this.options.report(`  ${part.name} stopped`);
    };
    await stopPart(this.api, API_STOP);
    await stopPart(this.worker, WORKER_STOP);
    await stopPart(this.temporal, TEMPORAL_STOP);
    await stopPart(this.postgres, STOP_MILLISECONDS);
    forgetInstallation(this.options.config.SLUICE_DATA_DIR);
  }

  /** Stops what a killed start left running, which frees its ports. */
  private async clear(dataDir: string): Promise<void> {
    const { report } = this.options;
    await Promise.all([
      stopLeftover(dataDir, 'API', report),
      stopLeftover(dataDir, 'worker', report),
      stopLeftover(dataDir, 'Temporal', report),
      clearLeftovers(path.join(dataDir, 'postgres'), report),
    ]);
  }

  /** Starts Postgres and Temporal, unless they are external. Returns their addresses. */
  private startServers(plan: Plan): Promise<[string, string]> {
    const { config, report } = this.options;
    const common = { dataDir: plan.dataDir, cacheDir: plan.cacheDir, report };
    const logFile = (name: string) => path.join(plan.logsDir, `${name}.log`);
    const postgres = async (signal: AbortSignal) => {
      if (config.DATABASE_URL) return config.DATABASE_URL;
      report(`Starting Postgres on port ${plan.ports.postgres} …`);
      const memoryMb = config.SLUICE_POSTGRES_MEMORY_MB;
      const start = () => startPostgres({ ...common, signal, memoryMb, port: plan.ports.postgres });
      const kept = await this.keep('Postgres', start, logFile('postgres'));
      this.postgres = kept;
      return kept.current.url;
    };
    const temporal = async (signal: AbortSignal) => {
      if (!plan.ownTemporal) return plan.temporalAddress;
      report(`Starting Temporal on port ${plan.ports.temporal} …`);
      const { temporal: port, temporalUi: uiPort } = plan.ports;
      const namespaces = [config.TEMPORAL_NAMESPACE].filter((name) => name !== 'default');
      const keepDays = config.SLUICE_EXPORT_RUN_DAYS;
      const start = () => startTemporal({ ...common, signal, port, uiPort, namespaces, keepDays });
      this.temporal = await this.keep('Temporal', start, logFile('temporal'));
      return plan.temporalAddress;
    };
    return allOrNothing<[string, string]>(this.options.signal, postgres, temporal);
  }

  private async startApi(plan: Plan, env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<void> {
    const { report } = this.options;
    const logFile = path.join(plan.logsDir, 'api.log');
    const file = this.options.programs?.api ?? path.join(ROOT, 'api', 'main.ts');
    const { dataDir } = plan;
    const start = () =>
      startProgram({ name: 'API', file, nodeOptions: API_NODE_OPTIONS, env, dataDir, logFile, report });
    // If the API ends before it is ready, the start fails. Only a ready API is restarted when it ends.
    let first: Awaited<ReturnType<typeof start>> | undefined = await start();
    const startAgain = async () => {
      const program = first ?? (await start());
      first = undefined;
      return program;
    };
    try {
      await waitForApi(first, plan.localUrl, logFile, report, signal);
    } catch (error) {
      await first.stop({ within: 1_000 });
      throw error;
    }
    this.api = await this.keep('API', startAgain, logFile);
  }

  /** Returns whether the worker became ready in time. If not, the worker keeps waiting for Temporal. */
  private async startWorker(plan: Plan, apiEnv: NodeJS.ProcessEnv, signal: AbortSignal): Promise<boolean> {
    const { report } = this.options;
    const logFile = path.join(plan.logsDir, 'worker.log');
    const file = this.options.programs?.worker ?? path.join(ROOT, 'worker', 'main.ts');
    const env = { ...apiEnv, SLUICE_METRICS_PORT: String(plan.ports.workerMetrics) };
    const start = () => startProgram({ name: 'worker', file, env, dataDir: plan.dataDir, logFile, report });
    const kept = await this.keep('worker', start, logFile);
    this.worker = kept;
    return waitForWorker(kept.current.readyMessage, report, signal);
  }

  private keep<S extends Service>(name: string, start: () => Promise<S>, logFile: string): Promise<Kept<S>> {
    return keepRunning({ name, start, logFile }, this.options);
  }

  private childEnv(plan: Plan, roles: DatabaseRoles): NodeJS.ProcessEnv {
    const { config, env } = this.options;
    return {
      ...keepingCompiled(env),
      PORT: String(plan.ports.api),
      DATABASE_URL: roles.server,
      SLUICE_READER_DATABASE_URL: roles.wall.up ? roles.reader : '',
      // The tables of the embedded Postgres are up to date, and no process needs its superuser.
      ...(plan.ownPostgres && { SLUICE_OWNER_DATABASE_URL: '' }),
      TEMPORAL_ADDRESS: plan.temporalAddress,
      // These settings are for an external Temporal. The embedded one uses no TLS.
      ...(plan.ownTemporal && {
        TEMPORAL_API_KEY: '',
        TEMPORAL_TLS: '',
        TEMPORAL_TLS_CERT: '',
        TEMPORAL_TLS_KEY: '',
        TEMPORAL_TLS_CA: '',
      }),
      ...(plan.temporalUiUrl !== null && { TEMPORAL_UI_URL: plan.temporalUiUrl }),
      SLUICE_PUBLIC_URL: plan.baseUrl,
      SLUICE_DATA_DIR: plan.dataDir,
      SLUICE_EXPORT_ROOT: config.SLUICE_EXPORT_ROOT,
      ...keySettings(config, plan.dataDir),
      SLUICE_METRICS_PORT: String(plan.ports.apiMetrics),
      // The processes must end on their own before this process kills them.
      SLUICE_SHUTDOWN_SECONDS: String(Math.min(config.SLUICE_SHUTDOWN_SECONDS, 2)),
    };
  }
}

/** By default the processes read the file in the data directory, so that they see its changes. */
function keySettings(config: Config, dataDir: string): NodeJS.ProcessEnv {
  if (config.SLUICE_ENCRYPTION_KEYS || config.SLUICE_ENCRYPTION_KEY_FILE) return {};
  ensureKeyFile(dataDir);
  return { SLUICE_ENCRYPTION_KEYS: '', SLUICE_ENCRYPTION_KEY_FILE: keyFile(dataDir) };
}

/**
 * Runs several tasks at once. If one fails, aborts the others and waits for them, so that no task still starts
 * something while the caller stops what is running.
 */
async function allOrNothing<T extends unknown[]>(
  signal: AbortSignal,
  ...work: { [K in keyof T]: (signal: AbortSignal) => Promise<T[K]> }
): Promise<T> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const results = await Promise.allSettled(
    work.map((one) =>
      one(either).catch((error) => {
        failed.abort(error);
        throw error;
      }),
    ),
  );
  // Throws the first failure, not the aborts that followed from it.
  either.throwIfAborted();
  return results.map((result) => (result as PromiseFulfilledResult<unknown>).value) as T;
}

async function waitForWorker(ready: Promise<void>, report: Report, signal: AbortSignal): Promise<boolean> {
  const began = Date.now();
  const ticker = setInterval(() => {
    report(`  waiting for the worker (${Math.round((Date.now() - began) / 1000)} s) …`);
  }, 2_500);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), WORKER_READY);
    signal.addEventListener('abort', () => resolve(false), { once: true });
  });
  try {
    return await Promise.race([ready.then(() => true), late]);
  } finally {
    clearInterval(ticker);
    clearTimeout(timer);
  }
}
