import { accessSync, constants, existsSync, statfsSync } from 'node:fs';
import type { Command } from 'commander';
import { type Config, mostConnections } from '../../config.ts';
import { type DatabaseReport, diagnoseDatabase } from '../../db/diagnose.ts';
import { createPool } from '../../db/pool.ts';
import { type GivenAddresses, givenAddresses } from '../../db/roles/address.ts';
import { connected, findRoles } from '../../db/roles/roles.ts';
import { diagnoseTemporal } from '../../schedules/diagnose.ts';
import { parseKeyring } from '../../secrets/envelope.ts';
import { keyFile } from '../../secrets/key-file.ts';
import { openKeys } from '../../secrets/key-source.ts';
import { runningDatabaseUrl } from '../../stack/borrow-postgres.ts';
import { findKeyState, keyProblems } from '../../tenancy/encryption-keys.ts';
import { type Finding, type Product, sealedColumns } from '../../tenancy/product.ts';
import { diagnoseSqlAccess } from '../../tenancy/sql-access.ts';
import type { LoadProducts } from '../command-file.ts';
import { say, sayJson, settings } from '../context.ts';
import { whyNoTemporal } from '../installation.ts';

const finding = (check: string, ok: boolean, sentence: string): Finding => ({ check, ok, sentence });
const GIBIBYTE = 1024 ** 3;
const CLOCK_TOLERANCE_SECONDS = 2;
/** Maintenance carries copied properties every few minutes. */
const MOST_BEHIND_SECONDS = 30 * 60;
/** What Postgres has as it comes, if nobody sets it. */
const STOCK = { bufferBytes: 128 * 1024 ** 2, logBytes: GIBIBYTE };

function lookAtNode(): Finding {
  const major = Number(process.versions.node.split('.')[0]);
  return finding(
    'Node',
    major >= 24,
    major >= 24
      ? `Node ${process.versions.node} runs Sluice.`
      : `Node ${process.versions.node} is too old: Sluice needs Node 24. On Linux, \`npx sluice\` and \`npm run\` bring their own Node.`,
  );
}

function lookAtDataDir(config: Config): Finding[] {
  const directory = config.SLUICE_DATA_DIR;
  if (!existsSync(directory)) {
    return [
      finding(
        'data directory',
        true,
        `${directory} does not exist yet. \`npm start\` creates it. With external services you do not need it.`,
      ),
    ];
  }
  try {
    accessSync(directory, constants.W_OK);
  } catch {
    return [finding('data directory', false, `This user cannot write to ${directory} (SLUICE_DATA_DIR).`)];
  }
  const { bavail, bsize } = statfsSync(directory);
  const free = (bavail * bsize) / GIBIBYTE;
  return [
    finding('data directory', true, `${directory} is writable.`),
    finding(
      'disk space',
      free >= 1,
      free >= 1
        ? `The disk of the data directory has ${free.toFixed(1)} GiB free.`
        : `The disk of ${directory} has only ${free.toFixed(2)} GiB free. When it is full, Sluice refuses events.`,
    ),
  ];
}

function lookAtKeys(config: Config): Finding {
  const file = config.SLUICE_ENCRYPTION_KEY_FILE ?? keyFile(config.SLUICE_DATA_DIR);
  if (config.SLUICE_ENCRYPTION_KEYS) {
    try {
      const { primary, keys } = parseKeyring(config.SLUICE_ENCRYPTION_KEYS);
      return finding(
        'encryption keys',
        true,
        `The key ${primary} encrypts new secrets. ${keys.size} ${keys.size === 1 ? 'key is' : 'keys are'} available for decryption.`,
      );
    } catch (error) {
      return finding('encryption keys', false, (error as Error).message);
    }
  }
  return existsSync(file)
    ? finding(
        'encryption keys',
        true,
        `The keys in ${file} encrypt stored secrets. Keep a copy of this file elsewhere.`,
      )
    : finding(
        'encryption keys',
        true,
        `There are no encryption keys yet. \`npm start\` creates ${file}. For \`npm run api\` and \`npm run worker\`, set SLUICE_ENCRYPTION_KEYS.`,
      );
}

/** Says what Postgres has, and what it should have. It knows nothing of its machine, so it never fails. */
function lookAtRoom({ bufferBytes, logBytes }: DatabaseReport): Finding {
  const size = (bytes: number) =>
    bytes < GIBIBYTE ? `${Math.round(bytes / 1024 ** 2)} MiB` : `${(bytes / GIBIBYTE).toFixed(1)} GiB`;
  const has = `Postgres has buffers of ${size(bufferBytes)} (shared_buffers) and a log of up to ${size(logBytes)} (max_wal_size).`;
  const isStock = bufferBytes <= STOCK.bufferBytes || logBytes <= STOCK.logBytes;
  const advice = isStock
    ? ' Set shared_buffers to a quarter of its memory, max_wal_size to 8 to 16 GiB where the disk has room, and checkpoint_timeout to 15 minutes: capture slows down as the tables grow otherwise.'
    : '';
  return finding('memory and log', true, has + advice);
}

/** Says how old the copied properties of persons are. */
function lookAtPersons({ personsBehindSeconds: seconds }: DatabaseReport): Finding {
  if (seconds === null) return finding('persons', true, 'No event has changed a person yet.');
  const minutes = Math.round(seconds / 60);
  const age = `Persons have the pages and other copied properties of the events up to ${minutes} ${minutes === 1 ? 'minute' : 'minutes'} ago.`;
  const isFresh = seconds <= MOST_BEHIND_SECONDS;
  return finding(
    'persons',
    isFresh,
    isFresh
      ? age
      : `${age} The step carryProperties of maintenance is behind: look whether a worker runs, and at sluice-maintenance in the Temporal UI.`,
  );
}

function lookAtReport(report: DatabaseReport, config: Config): Finding[] {
  const needed = mostConnections(config);
  const lacking = report.known - report.applied;
  const skew = Math.abs(report.clockSkewSeconds);
  return [
    finding(
      'Postgres',
      report.version >= 16,
      report.version >= 16
        ? `Postgres ${report.version} answers.`
        : `Postgres ${report.version} is too old: Sluice needs version 16 or newer.`,
    ),
    finding(
      'migrations',
      lacking === 0,
      lacking === 0
        ? `All ${report.known} migrations are applied.`
        : lacking > 0
          ? `${lacking} of ${report.known} migrations are missing. Run \`npx sluice migrate\` or restart Sluice.`
          : `The database has ${report.applied} migrations, but this version of Sluice knows only ${report.known}. Use the newer version.`,
    ),
    finding(
      'clocks',
      skew <= CLOCK_TOLERANCE_SECONDS,
      skew <= CLOCK_TOLERANCE_SECONDS
        ? 'The clocks of this machine and of Postgres agree.'
        : `The clocks of this machine and of Postgres differ by ${skew.toFixed(1)} s. Synchronise both with NTP.`,
    ),
    lookAtRoom(report),
    finding(
      'connections',
      needed <= report.connections,
      needed <= report.connections
        ? `Postgres accepts ${report.connections} connections. One API process and one worker open ${needed} at most.`
        : `Postgres accepts only ${report.connections} connections, but one API process and one worker open up to ${needed}. Raise max_connections, or lower SLUICE_DATABASE_POOL, SLUICE_READING_POOL or SLUICE_EXPORT_CONCURRENCY.`,
    ),
    lookAtPersons(report),
    finding(
      'organizations',
      report.organizations > 0,
      report.organizations > 0
        ? `Organizations: ${report.organizations}. Active users: ${report.users}.`
        : 'There is no organization yet. Run `npx sluice init` or `npm start`.',
    ),
  ];
}

/** Runs the checks of each product. If the checks of one throw, those of the others run all the same. */
async function lookAtProducts(url: string, products: readonly Product[]): Promise<Finding[]> {
  const pool = createPool({ url, size: 1, name: 'doctor' });
  const found: Finding[] = [];
  try {
    for (const product of products) {
      try {
        found.push(...((await product.diagnose?.(pool)) ?? []));
      } catch (error) {
        found.push(
          finding(product.name, false, `The checks of this product failed: ${(error as Error).message}.`),
        );
      }
    }
  } finally {
    await pool.end();
  }
  return found;
}

/** Looks at the logins for SQL clients, where there are or were any: looking takes an administrator of the roles. */
async function lookAtLogins(url: string, database: GivenAddresses): Promise<Finding[]> {
  try {
    const some = await connected(url, (client) => client.query('select from sql_logins limit 1'));
    return some.rowCount === 0 ? [] : [await diagnoseSqlAccess(database)];
  } catch (error) {
    return [finding('SQL logins', false, `They cannot be looked at: ${(error as Error).message}.`)];
  }
}

/** Looks whether Postgres itself keeps what users write within their project. */
async function lookAtWall(database: GivenAddresses): Promise<Finding> {
  const check = 'second wall';
  try {
    const { wall } = await findRoles(database);
    const more = wall.sql ? `\n${wall.sql}` : '';
    if (!wall.up) return finding(check, false, `Second wall off: ${wall.reason}.${more}`);
    return finding(
      check,
      true,
      more
        ? `What users write runs as a role that Postgres keeps within its project. This role may still call functions that it does not need. ${more}`
        : 'What users write runs as a role that Postgres keeps within its project.',
    );
  } catch (error) {
    return finding(check, false, (error as Error).message);
  }
}

/** Looks whether the keys open what is stored, and whether all processes hold them. */
async function lookAtSecrets(url: string, config: Config, products: readonly Product[]): Promise<Finding> {
  const check = 'stored secrets';
  const pool = createPool({ url, size: 1, name: 'doctor' });
  try {
    const file = keyFile(config.SLUICE_DATA_DIR);
    const isGiven = config.SLUICE_ENCRYPTION_KEYS || config.SLUICE_ENCRYPTION_KEY_FILE;
    const { keyring } = openKeys(
      isGiven ? config : { SLUICE_ENCRYPTION_KEY_FILE: existsSync(file) ? file : undefined },
    );
    const problems = keyProblems(await findKeyState(pool, sealedColumns(products), keyring));
    return finding(
      check,
      problems.length === 0,
      problems.length === 0
        ? 'The keys open all stored secrets, and every process holds the key that encrypts.'
        : `${problems.join(' ')} \`npx sluice keys\` shows more.`,
    );
  } catch (error) {
    return finding(check, false, (error as Error).message);
  } finally {
    await pool.end();
  }
}

async function lookAtDatabase(config: Config, products: readonly Product[]): Promise<Finding[]> {
  const url = config.DATABASE_URL ?? (await runningDatabaseUrl(config.SLUICE_DATA_DIR));
  if (!url) {
    return [
      finding(
        'Postgres',
        false,
        'DATABASE_URL is not set, and `npm start` is not running with this data directory. Do one of the two.',
      ),
    ];
  }
  try {
    const report = await diagnoseDatabase(url);
    const found = lookAtReport(report, config);
    if (report.applied !== report.known) return found;
    const database = givenAddresses(url, config.DATABASE_URL ? config : {});
    return [
      ...found,
      await lookAtWall(database),
      ...(await lookAtLogins(url, database)),
      await lookAtSecrets(url, config, products),
      ...(await lookAtProducts(url, products)),
    ];
  } catch (error) {
    const place = config.DATABASE_URL ? 'DATABASE_URL' : 'the embedded Postgres';
    return [
      finding(
        'Postgres',
        false,
        `Postgres (${place}) cannot be reached: ${(error as Error).message || 'connection refused'}.`,
      ),
    ];
  }
}

async function lookAtApi(config: Config): Promise<Finding> {
  const url = `http://127.0.0.1:${config.PORT}/_readyz`;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
    const body = (await response.json()) as { checks?: Record<string, unknown> };
    return response.ok
      ? finding('API', true, `The API is ready on port ${config.PORT}.`)
      : finding(
          'API',
          false,
          `The API answers on port ${config.PORT}, but it is not ready: ${JSON.stringify(body.checks)}.`,
        );
  } catch (error) {
    const cause = (error as { cause?: Error }).cause ?? (error as Error);
    return finding(
      'API',
      false,
      `No API answers on port ${config.PORT} of this machine (${cause.message || 'connection refused'}).`,
    );
  }
}

async function diagnose(products: readonly Product[]): Promise<Finding[]> {
  const config = settings();
  return [
    lookAtNode(),
    ...lookAtDataDir(config),
    lookAtKeys(config),
    ...(await lookAtDatabase(config, products)),
    ...(config.TEMPORAL_ADDRESS === undefined
      ? [finding('Temporal', false, whyNoTemporal(config))]
      : await diagnoseTemporal(config)),
    await lookAtApi(config),
  ];
}

export function doctorCommand(program: Command, products: LoadProducts): void {
  program
    .command('doctor')
    .description('Check this installation. Exits with code 1 if a check fails.')
    .option('--json', 'print the result as JSON')
    .action(async (options: { json?: boolean }) => {
      const findings = await diagnose(await products());
      const wrong = findings.filter((one) => !one.ok);
      if (options.json) sayJson({ ok: wrong.length === 0, findings }, 2);
      else {
        for (const { ok, check, sentence } of findings)
          say(`${ok ? 'ok    ' : 'WRONG '} ${check}: ${sentence}`);
        const count = wrong.length === 1 ? '1 check' : `${wrong.length} checks`;
        say(wrong.length === 0 ? 'All checks passed.' : `${count} failed.`);
      }
      if (wrong.length > 0) process.exitCode = 1;
    });
}
