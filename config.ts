import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { PlainError } from './values/plain-error.ts';

/**
 * Every setting of Sluice, one entry each. The entry gives the type, the default and the validation of its value.
 * Its description is a row of the configuration table in the README (`npm run docs`).
 */
const flag = z.enum(['true', 'false', '1', '0']).transform((value) => value === 'true' || value === '1');
const port = z.coerce.number().int().min(0).max(65_535);
const positive = z.coerce.number().int().min(1);

const variables = {
  PORT: port.default(8000).describe('Port of the HTTP API.'),
  SLUICE_HOST: z
    .string()
    .default('0.0.0.0')
    .describe('Address that the HTTP API and the metrics servers listen on.'),
  SLUICE_PUBLIC_URL: z
    .url({ protocol: /^https?$/ })
    .transform((value) => value.replace(/\/+$/, ''))
    .optional()
    .describe(
      'URL at which users reach the API. Links in responses start with it. Default: `http://localhost:PORT`.',
    ),
  SLUICE_DATA_DIR: z
    .string()
    .min(1)
    .default('.sluice')
    .describe('Data directory: the embedded Postgres and Temporal, keys, logs and local exports.'),
  SLUICE_CACHE_DIR: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Directory for Postgres and Temporal binaries. Several checkouts can share it. Default: `/var/cache/sluice` for root, else `~/.cache/sluice`.',
    ),
  DATABASE_URL: z
    .url({ protocol: /^postgres(ql)?$/ })
    .optional()
    .describe('URL of a Postgres, version 16 or newer. When unset, `npm start` runs its own Postgres.'),
  SLUICE_OWNER_DATABASE_URL: z
    .url({ protocol: /^postgres(ql)?$/ })
    .optional()
    .describe(
      'URL of the same database with the user that applies migrations and makes roles (docs/operations.md). Default: `DATABASE_URL`.',
    ),
  SLUICE_READER_DATABASE_URL: z
    .url({ protocol: /^postgres(ql)?$/ })
    .optional()
    .describe(
      'URL of the same database with the user that runs what users write: filters, columns and previews. Default: Sluice makes this user.',
    ),
  SLUICE_POSTGRES_PORT: port
    .default(5433)
    .describe('Port of the embedded Postgres, which listens on loopback only.'),
  SLUICE_POSTGRES_MEMORY_MB: positive
    .min(512)
    .optional()
    .describe(
      'Memory that the embedded Postgres counts on, in MiB. A quarter of it becomes its buffers. Default: the memory of the machine, or of the control group.',
    ),
  SLUICE_DATABASE_POOL: positive
    .default(10)
    .describe(
      'Size of the main Postgres connection pool of each process: the management API, or the bookkeeping of a worker.',
    ),
  SLUICE_READING_POOL: positive
    .default(4)
    .describe(
      'Number of expensive lists and searches that an API process runs at once. A project runs half of them at most, and no more than half as many as the machine has cores.',
    ),
  SLUICE_MIGRATE: flag
    .default(true)
    .describe('Whether the API and the worker apply missing migrations when they start.'),
  TEMPORAL_ADDRESS: z
    .string()
    .regex(/^[^\s/:]+:\d+$/, 'must be host:port')
    .optional()
    .describe(
      'Address of the Temporal server, as `host:port`. When unset, `npm start` runs its own Temporal.',
    ),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default').describe('Temporal namespace.'),
  TEMPORAL_API_KEY: z
    .string()
    .min(1)
    .optional()
    .describe('API key for Temporal Cloud. It also switches TLS on.'),
  TEMPORAL_TLS: flag.default(false).describe('Whether to connect to Temporal over TLS.'),
  TEMPORAL_TLS_CERT: z
    .string()
    .min(1)
    .optional()
    .describe('Path of the client certificate (PEM) for mutual TLS.'),
  TEMPORAL_TLS_KEY: z
    .string()
    .min(1)
    .optional()
    .describe('Path of the private key (PEM) of the client certificate.'),
  TEMPORAL_TLS_CA: z
    .string()
    .min(1)
    .optional()
    .describe("Path of the certificate authority (PEM) that signed the Temporal server's certificate."),
  TEMPORAL_UI_URL: z
    .url({ protocol: /^https?$/ })
    .transform((value) => value.replace(/\/+$/, ''))
    .optional()
    .describe('URL of the Temporal UI, used in links. Default: the embedded UI.'),
  SLUICE_TASK_QUEUE: z
    .string()
    .min(1)
    .default('sluice')
    .describe('Temporal task queue that the workers poll.'),
  SLUICE_TEMPORAL_PORT: port
    .default(7233)
    .describe('Port of the embedded Temporal, which listens on loopback only.'),
  SLUICE_TEMPORAL_UI_PORT: port
    .default(8233)
    .describe('Port of the embedded Temporal UI, which listens on loopback only.'),
  SLUICE_METRICS_PORT: port
    .default(0)
    .describe(
      'Port that serves Prometheus metrics at `GET /metrics`. 0 switches metrics off. Under `npm start` the worker uses the next port.',
    ),
  SLUICE_ENCRYPTION_KEYS: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Keys that encrypt stored secrets: a comma-separated list of `id:key`, each key 32 bytes in base64. The first ' +
        'key encrypts, every key decrypts. Default: `npm start` generates one in the data directory.',
    ),
  SLUICE_ENCRYPTION_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Path of a file with these keys, one on each line, instead of `SLUICE_ENCRYPTION_KEYS`. Sluice reads it again when it changes.',
    ),
  SLUICE_EXPORT_ROOT: z
    .string()
    .min(1)
    .optional()
    .describe('Directory that contains all `File` exports. Default: `exports` in the data directory.'),
  SLUICE_EXPORT_CONCURRENCY: positive
    .optional()
    .describe(
      'Number of export runs that a worker executes at once. A third of them, at least one, is reserved for backfills. While destinations do not answer, half as many runs again may be in progress. Default: one for every 512 MB of memory, at least 2 and at most 8.',
    ),
  SLUICE_EXPORTS_PER_PROJECT: positive
    .default(1_000)
    .describe('Maximum number of batch exports of a project.'),
  SLUICE_FUNCTION_CONCURRENCY: positive
    .default(256)
    .describe('Number of invocations of functions that a worker has in progress at once.'),
  SLUICE_FUNCTION_DAYS: positive
    .default(30)
    .describe('Number of days after which ended invocations of functions and their logs are deleted.'),
  SLUICE_FUNCTION_LEASE_SECONDS: positive
    .min(15)
    .default(30)
    .describe(
      'Number of seconds after which an invocation that a worker has begun, and of which it says nothing more, is begun by another one.',
    ),
  SLUICE_FUNCTION_BEHIND_SECONDS: positive
    .default(3_600)
    .describe(
      'Number of seconds after which a function whose oldest invocation still waits causes a notice to `SLUICE_NOTICE_WEBHOOK`, once a day.',
    ),
  SLUICE_FUNCTIONS_PER_PROJECT: positive.default(1_000).describe('Maximum number of functions of a project.'),
  SLUICE_FLAGS_PER_PROJECT: positive
    .default(5_000)
    .describe('Maximum number of feature flags of a project that are not deleted.'),
  SLUICE_FLAG_BYTES_PER_PROJECT: positive
    .default(16 * 1024 * 1024)
    .describe(
      'Maximum number of bytes that the filters of all feature flags of a project have together. Every API process keeps them in memory.',
    ),
  SLUICE_COHORT_BYTES_PER_PROJECT: positive
    .default(16 * 1024 * 1024)
    .describe(
      'Maximum number of bytes that the filters of all cohorts of a project have together. Every API process keeps them in memory.',
    ),
  SLUICE_VERSION_DAYS: positive
    .default(365)
    .describe(
      'Number of days for which Sluice keeps versions of feature flags and cohorts that are not among the newest 100 of theirs, flags, cohorts and functions that were deleted, and plans for flags that are over.',
    ),
  SLUICE_VERSION_BYTES_PER_PROJECT: positive
    .default(256 * 1024 * 1024)
    .describe(
      'Number of bytes on the disk that the versions of the feature flags of a project may have, and as many those of its cohorts and of its functions. The oldest ones go first.',
    ),
  SLUICE_ACTIVITY_LOG_DAYS: positive
    .default(730)
    .describe('Number of days for which Sluice keeps the activity log.'),
  SLUICE_FLAG_REQUESTS_PER_MONTH: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe(
      'Number of requests for feature flags that an organization without a quota of its own may make in a month. A request for definitions counts as ten. 0: any number.',
    ),
  SLUICE_PROJECTS_PER_ORGANIZATION: positive
    .default(200)
    .describe('Maximum number of projects of an organization.'),
  SLUICE_ORGANIZATIONS_PER_USER: positive
    .default(100)
    .describe('Number of organizations from which on a user who owns them cannot create another one.'),
  SLUICE_EXPORT_PAUSE_AFTER: z.coerce
    .number()
    .int()
    .min(0)
    .default(3)
    .describe(
      'Number of failed runs among the latest ones after which Sluice pauses a batch export. 0 switches this off.',
    ),
  SLUICE_NOTICE_WEBHOOK: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      'URL that receives notices, as JSON, about batch exports that fail, fall behind or are paused, and about functions ' +
        'that are disabled because of their cost or fall behind. If its address is private, list it in `SLUICE_EGRESS_ALLOW`. Default: Sluice sends no notices.',
    ),
  SLUICE_EVENT_RETENTION_DAYS: positive
    .optional()
    .describe(
      'Number of days for which Sluice keeps events. It deletes whole weeks of events, by the time of ingestion. Default: Sluice keeps events forever.',
    ),
  SLUICE_EXPORT_LOG_DAYS: positive
    .default(30)
    .describe('Number of days for which Sluice keeps the logs of batch exports.'),
  SLUICE_EXPORT_RUN_DAYS: z.coerce
    .number()
    .int()
    .min(100)
    .default(400)
    .describe(
      'Number of days for which Sluice keeps the runs, backfills and metrics of batch exports; at least 100.',
    ),
  SLUICE_EXPORT_REPAIR: flag
    .default(true)
    .describe('Whether Sluice starts missing intervals of batch exports again on its own.'),
  SLUICE_DESTINATION_SECONDS: z.coerce
    .number()
    .int()
    .min(1)
    .max(600)
    .default(10)
    .describe(
      'Number of seconds that an export waits for a connection to its destination or for the answer to a small request. ' +
        'In the middle of a large body it waits twice as long.',
    ),
  SLUICE_GEOIP_DATABASE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Path of a City or Country database in the MaxMind format (.mmdb). Sluice adds location properties to events ' +
        'from it and reads it again when the file changes. Default: events get no location.',
    ),
  SLUICE_EGRESS_ALLOW: z
    .string()
    .default('')
    .describe(
      'Private hosts, addresses and CIDRs, comma-separated, that exports and notices may connect to.',
    ),
  SLUICE_TRUST_PROXY: z
    .string()
    .default('')
    .describe(
      'Addresses and CIDRs, comma-separated, of proxies whose `X-Forwarded-*` headers Sluice trusts.',
    ),
  SLUICE_LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Lowest level that is logged: trace, debug, info, warn, error, fatal or silent.'),
  SLUICE_RATE_LIMIT: flag
    .default(false)
    .describe('Whether to limit requests that use a personal API key (see docs/management-api.md).'),
  SLUICE_RATE_LIMIT_BURST: positive
    .default(480)
    .describe('Maximum number of requests per minute and key, with `SLUICE_RATE_LIMIT`.'),
  SLUICE_RATE_LIMIT_SUSTAINED: positive
    .default(4800)
    .describe('Maximum number of requests per hour and key, with `SLUICE_RATE_LIMIT`.'),
  SLUICE_REQUESTS_AT_ONCE: positive
    .default(16)
    .describe(
      'Number of requests of a user to the management API that an API process works on at once. Further ones wait.',
    ),
  SLUICE_REFUSALS_PER_MINUTE: z.coerce
    .number()
    .int()
    .min(0)
    .default(1200)
    .describe(
      'Number of refused requests per minute: with an invalid key from an address, or with 403 or 404 for a key. Further ones get 429 before anything is looked up. 0 switches this off.',
    ),
  SLUICE_CONNECTIONS: positive
    .default(10_000)
    .describe('Number of HTTP connections that an API process holds. Beyond it, it closes idle ones.'),
  SLUICE_CONNECTIONS_PER_ADDRESS: positive
    .default(1_000)
    .describe(
      'The same for the connections of one address. It does not apply to the proxies of `SLUICE_TRUST_PROXY`.',
    ),
  SLUICE_QUERY_FILE_SECONDS: positive
    .max(86_400)
    .default(600)
    .describe(
      'Number of seconds that the result of a query as a file may take, with the time in which its client reads it.',
    ),
  SLUICE_QUERY_FILE_BYTES: positive
    .default(10 * 1024 * 1024 * 1024)
    .describe('Maximum number of bytes of the result of a query as a file.'),
  SLUICE_EXPORT_QUERY_SECONDS: positive
    .max(86_400)
    .default(3_600)
    .describe(
      'Number of seconds that the query of a batch export that runs once may take, with the time in which its destination takes the rows.',
    ),
  SLUICE_ALLOW_ORGANIZATION_CREATION: flag
    .default(true)
    .describe('Whether users can create more organizations with `POST /api/organizations/`.'),
  SLUICE_INSTANCE_TAG: z
    .string()
    .default('none')
    .describe('Text that organizations show as `metadata.instance_tag`.'),
  SLUICE_SHUTDOWN_SECONDS: positive
    .default(8)
    .describe('Number of seconds that a stopping process waits for open requests and activities.'),
} as const;

/** What commands read that use the API of an installation. They are no settings of the installation itself. */
const CLIENT_VARIABLES = ['SLUICE_URL', 'SLUICE_API_KEY', 'SLUICE_PROJECT_ID'] as const;

/** Where commands find the API of an installation, and with which key. An empty value counts as unset. */
export const clientVariables = (
  env: Record<string, string | undefined>,
): Record<(typeof CLIENT_VARIABLES)[number], string | undefined> => ({
  SLUICE_URL: env.SLUICE_URL || undefined,
  SLUICE_API_KEY: env.SLUICE_API_KEY || undefined,
  SLUICE_PROJECT_ID: env.SLUICE_PROJECT_ID || undefined,
});

const schema = z.object(variables);
type Variables = z.output<typeof schema>;

export interface Config
  extends Omit<
    Variables,
    | 'SLUICE_PUBLIC_URL'
    | 'SLUICE_DATA_DIR'
    | 'SLUICE_CACHE_DIR'
    | 'SLUICE_EXPORT_ROOT'
    | 'SLUICE_ENCRYPTION_KEY_FILE'
    | 'SLUICE_GEOIP_DATABASE'
  > {
  SLUICE_PUBLIC_URL: string;
  SLUICE_DATA_DIR: string;
  SLUICE_CACHE_DIR: string;
  SLUICE_EXPORT_ROOT: string;
  SLUICE_ENCRYPTION_KEY_FILE: string | undefined;
  SLUICE_GEOIP_DATABASE: string | undefined;
}

/** The environment has invalid settings. The message names each of them. */
export class ConfigError extends PlainError {
  override readonly name = 'ConfigError';
}

const isForClients = (name: string) => (CLIENT_VARIABLES as readonly string[]).includes(name);

function closest(name: string): string | undefined {
  const known = Object.keys(variables);
  return (
    known.find((one) => one.replaceAll('_', '') === name.replaceAll('_', '')) ??
    known.find((one) => one.startsWith(name) || name.startsWith(one))
  );
}

/** Reads all settings from the environment. Throws a ConfigError if any is invalid. An empty value counts as unset. */
export function loadConfig(env: Record<string, string | undefined>): Config {
  const given = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
  const problems: string[] = [];
  for (const name of Object.keys(given)) {
    if (name.startsWith('SLUICE_') && !(name in variables) && !isForClients(name)) {
      const hint = closest(name);
      problems.push(`${name}: no such setting${hint ? `; did you mean ${hint}?` : ''}`);
    }
  }
  if (given.SLUICE_ENCRYPTION_KEYS && given.SLUICE_ENCRYPTION_KEY_FILE) {
    problems.push('SLUICE_ENCRYPTION_KEY_FILE: SLUICE_ENCRYPTION_KEYS is set as well; set one of the two');
  }
  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) problems.push(`${String(issue.path[0])}: ${issue.message}`);
  }
  if (problems.length > 0 || !parsed.success) {
    throw new ConfigError(
      `The configuration is not valid:\n  ${problems.join('\n  ')}\nAll settings are listed in the README under "Configuration".`,
    );
  }
  const value = parsed.data;
  const dataDir = path.resolve(value.SLUICE_DATA_DIR);
  return {
    ...value,
    SLUICE_PUBLIC_URL: value.SLUICE_PUBLIC_URL ?? `http://localhost:${value.PORT}`,
    SLUICE_DATA_DIR: dataDir,
    SLUICE_CACHE_DIR: path.resolve(
      value.SLUICE_CACHE_DIR ??
        (process.getuid?.() === 0 ? '/var/cache/sluice' : path.join(os.homedir(), '.cache', 'sluice')),
    ),
    SLUICE_EXPORT_ROOT: path.resolve(value.SLUICE_EXPORT_ROOT ?? path.join(dataDir, 'exports')),
    SLUICE_ENCRYPTION_KEY_FILE:
      value.SLUICE_ENCRYPTION_KEY_FILE && path.resolve(value.SLUICE_ENCRYPTION_KEY_FILE),
    SLUICE_GEOIP_DATABASE: value.SLUICE_GEOIP_DATABASE && path.resolve(value.SLUICE_GEOIP_DATABASE),
  };
}

/** The sizes of the Postgres connection pools of an API process. Each pool is for one kind of work. */
export const apiPools = ({
  SLUICE_DATABASE_POOL: management,
  SLUICE_READING_POOL: reading,
}: Pick<Config, 'SLUICE_DATABASE_POOL' | 'SLUICE_READING_POOL'>) => ({
  management,
  /** Queries whose cost their callers decide. */
  reading,
  /** Queries that users write. Each may take a lot of Postgres' memory, so there are few. */
  reader: 4,
  /** Those of them for which nobody waits. */
  background: 2,
  /** Results of queries as files. Each is read for as long as its client takes it. */
  results: 4,
  /** Transactions that store events. While one waits for the disk, others are written. */
  ingest: 4,
  /** What public requests look up: the projects of their keys, and whom flags are for. */
  lane: 4,
  /** The one that hears of changes. */
  listener: 1,
});

/** The sizes of the Postgres connection pools of a worker that executes so many runs at once. */
export const workerPools = (
  { SLUICE_DATABASE_POOL: bookkeeping }: Pick<Config, 'SLUICE_DATABASE_POOL'>,
  runs: number,
) => ({
  bookkeeping,
  /** What functions are to see, and what becomes of it. */
  functions: 9,
  /** Events for functions: three kinds of turns of the dispatch, and deliveries of several projects at once. */
  functionReads: 7,
  /** Events that functions capture. */
  functionIngest: 2,
  /** The one that hears of new events. */
  listener: 1,
  /** Queries that may take long, and that a run can do without. */
  sizing: 2,
  /**
   * One connection for each run, half as many again for runs beside those that stand still, and the others for earlier
   * reads that have not stopped yet.
   */
  exports: runs * 2,
});

/** The most runs that a worker executes at once by default. */
export const MOST_RUNS = 8;

/** How many Postgres connections one API process and one worker open at most, with backups and commands left out. */
export function mostConnections(config: Config): number {
  // There is one run for each of the two lanes at least.
  const runs = Math.max(2, config.SLUICE_EXPORT_CONCURRENCY ?? MOST_RUNS);
  const sizes = [...Object.values(apiPools(config)), ...Object.values(workerPools(config, runs))];
  return sizes.reduce((sum, size) => sum + size, 0);
}

export interface SettingDescription {
  name: string;
  default: string;
  description: string;
}

/** The rows of the configuration table in the README. */
export function describeSettings(): SettingDescription[] {
  return Object.entries(variables).map(([name, type]) => {
    const fallback = type instanceof z.ZodDefault ? String(type.def.defaultValue) : '';
    return { name, default: fallback, description: type.description ?? '' };
  });
}
