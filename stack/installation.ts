import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Plan } from './plan.ts';
import { isRunning, processStart } from './process.ts';

/**
 * Where the Sluice of a data directory runs, for commands: they take their settings from here, so that they never work on the
 * database of one installation and the Temporal of another. It holds no secret.
 */
export interface Installation {
  /** The database that it was given, without its user; null: it runs one of its own. */
  database: string | null;
  /** Whether it runs a Temporal of its own. */
  ownTemporal: boolean;
  /** What its processes have, by the names of the settings. */
  settings: Record<string, string>;
}

const fileOf = (dataDir: string) => path.join(dataDir, 'running.json');

/** What is taken over from the environment of `npm start` as it is, and is no secret. */
const TAKEN = [
  'TEMPORAL_NAMESPACE',
  'TEMPORAL_TLS',
  'SLUICE_TASK_QUEUE',
  'SLUICE_EGRESS_ALLOW',
  'SLUICE_EXPORT_CONCURRENCY',
  'SLUICE_DATABASE_POOL',
  'SLUICE_READING_POOL',
  'SLUICE_FLAG_REQUESTS_PER_MONTH',
] as const;
/** The same, for paths, which may be relative to where `npm start` was called. */
const TAKEN_PATHS = [
  'SLUICE_EXPORT_ROOT',
  'SLUICE_ENCRYPTION_KEY_FILE',
  'TEMPORAL_TLS_CERT',
  'TEMPORAL_TLS_KEY',
  'TEMPORAL_TLS_CA',
] as const;

/** Names a database without its user, to compare two of them. */
export function databasePlace(url: string): string {
  const { hostname, port, pathname } = new URL(url);
  return `${hostname === 'localhost' ? '127.0.0.1' : hostname}:${port || '5432'}${pathname}`;
}

/** Writes down what runs now, until `forgetInstallation`. If this process is killed, nobody believes it any more. */
export function recordInstallation(plan: Plan, env: NodeJS.ProcessEnv): void {
  const settings: Record<string, string> = {
    PORT: String(plan.ports.api),
    TEMPORAL_ADDRESS: plan.temporalAddress,
    ...(plan.temporalUiUrl !== null && { TEMPORAL_UI_URL: plan.temporalUiUrl }),
  };
  const isForExternal = (name: string) => name.startsWith('TEMPORAL_TLS') && plan.ownTemporal;
  for (const name of TAKEN) if (env[name] && !isForExternal(name)) settings[name] = env[name];
  for (const name of TAKEN_PATHS)
    if (env[name] && !isForExternal(name)) settings[name] = path.resolve(env[name]);
  const database = plan.ownPostgres ? null : databasePlace(env.DATABASE_URL as string);
  const { pid } = process;
  const file = fileOf(plan.dataDir);
  const installation: Installation = { database, ownTemporal: plan.ownTemporal, settings };
  const content = JSON.stringify({ pid, started: processStart(pid), ...installation }, null, 2);
  writeFileSync(`${file}.new`, content, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

export const forgetInstallation = (dataDir: string): void => rmSync(fileOf(dataDir), { force: true });

/** The Sluice that runs with this data directory now. */
export function runningInstallation(dataDir: string): Installation | undefined {
  try {
    const { pid, started, ...installation } = JSON.parse(readFileSync(fileOf(dataDir), 'utf8'));
    return typeof started === 'string' && isRunning(pid, started) ? installation : undefined;
  } catch {
    return undefined;
  }
}
