import { spawn } from 'node:child_process';
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { loadConfig } from '../config.ts';
import { migrate } from '../db/migrate.ts';
import { createPool, type Pool } from '../db/pool.ts';
import { createSchedules, type Schedules } from '../schedules/schedules.ts';
import { startPostgres } from '../stack/postgres.ts';
import { startTemporal } from '../stack/temporal.ts';
import { createLogger } from '../telemetry/logger.ts';
import { processStat } from './process-stat.ts';

/** Everything that exports need, including a worker as it ships. */
export interface ExportStack {
  url: string;
  temporalAddress: string;
  exportRoot: string;
  /** Is deleted at the end. */
  stateDir: string;
  /** The settings of the worker, and of an API beside it. */
  env: Record<string, string>;
  pool: Pool;
  schedules: Schedules;
  worker: MeasuredProcess;
  stop(): Promise<void>;
}

/** Measures a process with the counters of the operating system. */
export class MeasuredProcess {
  readonly #pid: number;
  readonly #folder: string;

  constructor(pid: number) {
    this.#pid = pid;
    this.#folder = `/proc/${pid}`;
  }

  /** The CPU time in seconds. */
  get cpu(): number {
    return processStat(this.#pid)?.own ?? 0;
  }

  /** The memory in megabytes. */
  get memory(): number {
    return this.#status('VmRSS');
  }

  /** The peak memory in megabytes since the start, or since `forgetPeak`. */
  get peakMemory(): number {
    return this.#status('VmHWM');
  }

  forgetPeak(): void {
    writeFileSync(`${this.#folder}/clear_refs`, '5');
  }

  #status(field: string): number {
    const text = readFileSync(`${this.#folder}/status`, 'utf8');
    return Math.round(Number(new RegExp(`${field}:\\s+(\\d+)`).exec(text)?.[1] ?? 0) / 1024);
  }
}

const root = path.resolve(import.meta.dirname, '..');

/** Starts everything. `variables` are further settings of the worker. */
export async function startExportStack(variables: Record<string, string> = {}): Promise<ExportStack> {
  const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
  const exportRoot = path.join(stateDir, 'exports');
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const one of stops.reverse()) await one().catch((error) => console.error(error));
    rmSync(stateDir, { recursive: true, force: true });
  };
  try {
    const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
    const common = { dataDir: stateDir, cacheDir };
    const postgres = await startPostgres({
      ...common,
      port: 0,
    });
    stops.push(() => postgres.stop());
    const temporal = await startTemporal({ ...common, port: 0, uiPort: 0 });
    stops.push(() => temporal.stop());
    await migrate(postgres.url);
    const pool = createPool({ url: postgres.url, size: 4, name: 'bench' });
    stops.push(() => pool.end());
    const addresses = { DATABASE_URL: postgres.url, TEMPORAL_ADDRESS: temporal.address };
    const env = {
      ...addresses,
      SLUICE_DATA_DIR: stateDir,
      SLUICE_EXPORT_ROOT: exportRoot,
      SLUICE_LOG_LEVEL: 'warn',
    };
    const logger = createLogger({ name: 'bench', level: 'warn' });
    const schedules = createSchedules(loadConfig(addresses), logger);
    stops.push(() => schedules.close());
    await schedules.ensure();

    const output = openSync(path.join(stateDir, 'worker.log'), 'w');
    const worker = spawn(process.execPath, [path.join(root, 'worker/main.ts')], {
      env: { ...process.env, ...env, NODE_ENV: 'production', ...variables },
      stdio: ['ignore', output, output],
    });
    const gone = new Promise((resolve) => worker.once('exit', resolve));
    stops.push(async () => {
      worker.kill('SIGTERM');
      await gone;
    });
    return {
      url: postgres.url,
      temporalAddress: temporal.address,
      exportRoot,
      stateDir,
      env,
      pool,
      schedules,
      worker: new MeasuredProcess(worker.pid as number),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
