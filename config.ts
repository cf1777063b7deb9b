import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';

/**
 * Every setting of Sluice, one entry each. The entry validates the value, gives its type and its default, and
 * its description becomes the configuration table of the README (`npm run docs`).
 */
const flag = z.enum(['true', 'false', '1', '0']).transform((value) => value === 'true' || value === '1');
const port = z.coerce.number().int().min(0).max(65_535);
const positive = z.coerce.number().int().min(1);

const variables = {
  PORT: port.default(8000).describe('Port of the HTTP API.'),
  SLUICE_HOST: z.string().default('0.0.0.0').describe('Address that the HTTP API and the metrics listen on.'),
  SLUICE_PUBLIC_URL: z
    .url({ protocol: /^https?$/ })
    .transform((value) => value.replace(/\/+$/, ''))
    .optional()
    .describe(
      'Address under which users reach the API; `next` links and answers are built from it. Default: `http://localhost:PORT`.',
    ),
  SLUICE_DATA_DIR: z
    .string()
    .min(1)
    .default('.sluice')
    .describe('Directory of the embedded Postgres, the embedded Temporal, keys and local exports.'),
  SLUICE_CACHE_DIR: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Directory for downloaded or built binaries, shared by all checkouts. Default: `/var/cache/sluice` for root, else `~/.cache/sluice`.',
    ),
  DATABASE_URL: z
    .url({ protocol: /^postgres(ql)?$/ })
    .optional()
    .describe('Postgres 16 or newer. When unset, `npm start` runs its own Postgres in the data directory.'),
  SLUICE_POSTGRES_PORT: port.default(5433).describe('Port of the embedded Postgres (loopback only).'),
  SLUICE_DATABASE_POOL: positive.default(10).describe('Connections to Postgres per process.'),
  SLUICE_MIGRATE: flag
    .default(true)
    .describe('Whether the API and the worker apply missing migrations when they start.'),
  TEMPORAL_ADDRESS: z
    .string()
    .regex(/^[^\s/:]+:\d+$/, 'must be host:port')
    .optional()
    .describe(
      'Temporal frontend, as host:port. When unset, `npm start` runs its own Temporal in the data directory.',
    ),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default').describe('Temporal namespace.'),
  TEMPORAL_API_KEY: z.string().min(1).optional().describe('API key for Temporal Cloud; switches TLS on.'),
  TEMPORAL_TLS: flag.default(false).describe('Whether to speak TLS to Temporal.'),
  TEMPORAL_TLS_CERT: z
    .string()
    .min(1)
    .optional()
    .describe('File with the client certificate (PEM) for mutual TLS.'),
  TEMPORAL_TLS_KEY: z
    .string()
    .min(1)
    .optional()
    .describe('File with the private key (PEM) of the client certificate.'),
  TEMPORAL_TLS_CA: z
    .string()
    .min(1)
    .optional()
    .describe('File with the certificate authority (PEM) of the Temporal server.'),
  TEMPORAL_UI_URL: z
    .url({ protocol: /^https?$/ })
    .transform((value) => value.replace(/\/+$/, ''))
    .optional()
    .describe('Address of the Temporal UI, for links. Default: the embedded one.'),
  SLUICE_TASK_QUEUE: z.string().min(1).default('sluice').describe('Temporal task queue of the workers.'),
  SLUICE_TEMPORAL_PORT: port.default(7233).describe('Port of the embedded Temporal (loopback only).'),
  SLUICE_TEMPORAL_UI_PORT: port.default(8233).describe('Port of the embedded Temporal UI (loopback only).'),
  SLUICE_METRICS_PORT: port
    .default(0)
    .describe(
      'Port of Prometheus metrics, `GET /metrics`; 0 switches it off. `npm start` gives the worker the next port.',
    ),
  SLUICE_ENCRYPTION_KEYS: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Keys for secrets at rest: comma-separated `id:base64` of 32 bytes each, the first encrypts, all decrypt. ' +
        'Default: generated into the data directory by `npm start`.',
    ),
  SLUICE_EXPORT_ROOT: z
    .string()
    .min(1)
    .optional()
    .describe('Directory below which `File` exports may write. Default: `exports` in the data directory.'),
  SLUICE_EXPORT_CONCURRENCY: positive
    .optional()
    .describe(
      'Runs of batch exports that a worker does at once, a third of them for backfills; at least one of either. Default: one for each 256 MB of half of its memory, from 2 to 8.',
    ),
  SLUICE_EXPORT_PAUSE_AFTER: z.coerce
    .number()
    .int()
    .min(0)
    .default(3)
    .describe('Failed runs among the last ones after which a batch export is paused; 0: never.'),
  SLUICE_NOTICE_WEBHOOK: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      'Where notices of failed runs and paused batch exports are posted to, as JSON. A private address must be in ' +
        '`SLUICE_EGRESS_ALLOW`. Default: nowhere.',
    ),
  SLUICE_EVENT_RETENTION_DAYS: positive
    .optional()
    .describe(
      'Days after which stored events are deleted, in whole weeks by the time they came in. Default: never.',
    ),
  SLUICE_EXPORT_LOG_DAYS: positive.default(30).describe('Days for which the logs of batch exports are kept.'),
  SLUICE_EXPORT_RUN_DAYS: z.coerce
    .number()
    .int()
    .min(100)
    .default(400)
    .describe('Days for which runs and backfills of batch exports and their metrics are kept; at least 100.'),
  SLUICE_EXPORT_REPAIR: flag
    .default(true)
    .describe('Whether intervals of batch exports that are missing are started again by themselves.'),
  SLUICE_GEOIP_DATABASE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'MaxMind database file (.mmdb; City or Country, of MaxMind or another) that tells where the address of an ' +
        'event is. Read again when it is replaced. Default: events get no places.',
    ),
  SLUICE_EGRESS_ALLOW: z
    .string()
    .default('')
    .describe('Private hosts and CIDRs, comma-separated, that exports and functions may reach nevertheless.'),
  SLUICE_TRUST_PROXY: z
    .string()
    .default('')
    .describe('Addresses or CIDRs, comma-separated, of proxies whose `X-Forwarded-*` headers are believed.'),
  SLUICE_LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Least severe level that is logged.'),
  SLUICE_RATE_LIMIT: flag
    .default(false)
    .describe('Whether requests with a personal API key are limited (see docs/management-api.md).'),
  SLUICE_RATE_LIMIT_BURST: positive.default(480).describe('Requests per minute and key, when limited.'),
  SLUICE_RATE_LIMIT_SUSTAINED: positive.default(4800).describe('Requests per hour and key, when limited.'),
  SLUICE_ALLOW_ORGANIZATION_CREATION: flag
    .default(true)
    .describe('Whether `POST /api/organizations/` may create further organizations.'),
  SLUICE_INSTANCE_TAG: z
    .string()
    .default('none')
    .describe('Shown as `metadata.instance_tag` of organizations.'),
  SLUICE_SHUTDOWN_SECONDS: positive
    .default(8)
    .describe('How long a stopping process waits for requests and activities in flight.'),
} as const;

const schema = z.object(variables);
type Variables = z.output<typeof schema>;

export interface Config
  extends Omit<
    Variables,
    | 'SLUICE_PUBLIC_URL'
    | 'SLUICE_DATA_DIR'
    | 'SLUICE_CACHE_DIR'
    | 'SLUICE_EXPORT_ROOT'
    | 'SLUICE_GEOIP_DATABASE'
  > {
  SLUICE_PUBLIC_URL: string;
  SLUICE_DATA_DIR: string;
  SLUICE_CACHE_DIR: string;
  SLUICE_EXPORT_ROOT: string;
  SLUICE_GEOIP_DATABASE: string | undefined;
}

/** The environment does not describe a Sluice that could run. The message names every variable that is wrong. */
export class ConfigError extends Error {
  override name = 'ConfigError';
}

function closest(name: string): string | undefined {
  const known = Object.keys(variables);
  return (
    known.find((one) => one.replaceAll('_', '') === name.replaceAll('_', '')) ??
    known.find((one) => one.startsWith(name) || name.startsWith(one))
  );
}

/** Reads the environment once and refuses values that are wrong, by name. An empty value counts as unset. */
export function loadConfig(env: Record<string, string | undefined>): Config {
  const given = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
  const problems: string[] = [];
  for (const name of Object.keys(given)) {
    if (name.startsWith('SLUICE_') && !(name in variables)) {
      const hint = closest(name);
      problems.push(`${name}: no such setting${hint ? `; did you mean ${hint}?` : ''}`);
    }
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
    SLUICE_GEOIP_DATABASE: value.SLUICE_GEOIP_DATABASE && path.resolve(value.SLUICE_GEOIP_DATABASE),
  };
}

export interface SettingDescription {
  name: string;
  default: string;
  description: string;
}

/** What the README's configuration table is made of. */
export function describeSettings(): SettingDescription[] {
  return Object.entries(variables).map(([name, type]) => {
    const fallback = type instanceof z.ZodDefault ? String(type.def.defaultValue) : '';
    return { name, default: fallback, description: type.description ?? '' };
  });
}
