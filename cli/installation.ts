// The installation that a command works on. Its parts come from one place: from the Sluice that runs with the data directory, or
// from the environment.
import { type Config, loadConfig } from '../config.ts';
import type { ExportTemporal } from '../exports/temporal.ts';
import { databasePlace, type Installation, runningInstallation } from '../stack/installation.ts';
import { CommandError } from './command-error.ts';

type Environment = Record<string, string | undefined>;

/** What tells one installation from another. If the environment gives it, it must be that of the running installation. */
const IDENTITY = ['TEMPORAL_ADDRESS', 'TEMPORAL_NAMESPACE', 'SLUICE_TASK_QUEUE'] as const;

/** The settings of a command: what the running installation has, and what the environment adds to it. */
export function settingsOf(
  env: Environment,
  running: (dataDir: string) => Installation | undefined = runningInstallation,
): Config {
  const given = loadConfig(env);
  const found = running(given.SLUICE_DATA_DIR);
  if (!found) return given;
  const place = given.DATABASE_URL === undefined ? null : databasePlace(given.DATABASE_URL);
  if (found.database !== place) {
    // Another database is another installation. The environment has to say all of it.
    if (place !== null) return given;
    throw new CommandError(
      `The Sluice that runs with the data directory ${given.SLUICE_DATA_DIR} uses the database ${found.database}. Set DATABASE_URL to it.`,
    );
  }
  const config = loadConfig({ ...found.settings, ...nonEmpty(env) });
  const own = loadConfig(found.settings);
  for (const name of IDENTITY) {
    if (samePlace(config[name]) !== samePlace(own[name])) refuse(name, config[name], own[name], given);
  }
  const port = own.TEMPORAL_ADDRESS?.split(':')[1];
  const asked = env.SLUICE_TEMPORAL_PORT || '0';
  if (found.ownTemporal && asked !== '0' && asked !== port)
    refuse('SLUICE_TEMPORAL_PORT', asked, port, given);
  return config;
}

const nonEmpty = (env: Environment): Environment =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));

const samePlace = (value: string | undefined) => value?.replace(/^localhost:/, '127.0.0.1:');

function refuse(name: string, given: unknown, own: unknown, { SLUICE_DATA_DIR: dataDir }: Config): never {
  throw new CommandError(
    `${name} is ${given}, but the Sluice that runs with the data directory ${dataDir} has ${own}. Unset ${name}, or set SLUICE_DATA_DIR to the data directory of the other installation.`,
  );
}

/** Says why a command does not know where the Temporal of its installation is. */
export const whyNoTemporal = ({ DATABASE_URL, SLUICE_DATA_DIR: dataDir }: Config): string =>
  DATABASE_URL === undefined
    ? `No Sluice runs with the data directory ${dataDir} that says where its Temporal is. Start it with \`npm start\`, or restart it if its version is older.`
    : 'DATABASE_URL is set and TEMPORAL_ADDRESS is not. Set TEMPORAL_ADDRESS to the Temporal of the same installation.';

/** A Temporal that is away. What is asked of it fails with the reason. */
export function absentTemporal(reason: string): ExportTemporal {
  const away = async (): Promise<never> => {
    throw new Error(reason);
  };
  return {
    ...{ isReachable: () => false, within: away, sync: away, remove: away, list: away, isOwn: away },
    ...{ startRun: away, cancelRun: away, startBackfill: away, cancelBackfill: away, fateOfRun: away },
    ...{ callToPlace: away, fateOfScheduledRun: away, fateOfBackfill: away, verify: away },
    ...{ startNotice: away, mayHaveFired: away },
    runUrl: () => '',
  };
}
