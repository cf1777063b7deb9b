import path from 'node:path';
import type { RawConfig } from '../../destinations/config.ts';
import { postgresFields } from '../../destinations/postgres/config.ts';
import { createTableText } from '../../destinations/postgres/table.ts';
import { modelOf } from '../../models/index.ts';
import { QUERY, spanOf, TEXT_QUERY } from './dataset.ts';
import type { Job } from './export.ts';

export interface Place {
  url: string;
  folder: string;
  start: Date;
  rows: number;
  s3: { endpoint: string; accessKeyId: string; secretAccessKey: string; bucket: string };
  azure: { endpoint: string; account: string; key: string; container: string };
  gcs: { endpoint: string; keyFile: object; bucket: string };
  /** The folder of the Python peers. Undefined if they could not be installed. */
  python: string | undefined;
}

export interface Way {
  name: string;
  command: readonly string[];
  env?: Readonly<Record<string, string>>;
  rows: number;
  /** SQL statements to run before each export. */
  prepare?: readonly string[];
}

/** The wanted speed relative to another way, or the most memory. */
export type Goal = { over: string; atLeast: number } | { growthAtMost: number };

export interface Comparison {
  name: string;
  /** Sluice first, then the ways that it is compared with. */
  ways: Way[];
  goals: { of: string; goal: Goal }[];
}

/** By how many megabytes the worker may grow during an export. */
const GROWTH = 150;

const shell = (script: string) => ['bash', '-o', 'pipefail', '-c', script];

/** Selects the columns of the table that Sluice creates at its destination. */
const TABLE_QUERY =
  `select uuid, event, properties, to_json(elements_chain) as elements, null as set, null as set_once,
  distinct_id, project_id as team_id, null as ip, null as site_url, timestamp, person_properties from events`.replaceAll(
    /\s+/g,
    ' ',
  );
const TABLE = 'bench_events';

export function comparisons(place: Place, memorySizes: readonly number[]): Comparison[] {
  const { url, folder, rows, s3, azure, gcs, python } = place;
  const sluice = (
    name: string,
    settings: Job['settings'],
    more: { level?: number; rows?: number } = {},
  ): Way => {
    const size = more.rows ?? rows;
    const start = place.start.getTime();
    const level = more.level === undefined ? {} : { level: more.level };
    const job: Job = { url, settings, exportRoot: folder, start, end: start + spanOf(size), ...level };
    const program = path.join(import.meta.dirname, 'export.ts');
    return { name, command: [process.execPath, program, JSON.stringify(job)], rows: size };
  };
  const file = (file_format: string, compression: string) => ({
    type: 'File',
    config: { directory: 'out', file_format, compression },
  });
  const psql = (name: string, compress: string): Way => ({
    name,
    command: shell(
      `psql '${url}' -qc 'copy (select row_to_json(e) from (${QUERY}) e) to stdout' | ${compress} > '${folder}/out'`,
    ),
    rows,
  });
  // ConnectorX takes twice as long if it reads documents as JSON.
  const peer = (name: string, key: string): Way => ({
    name,
    command: ['python3', path.join(import.meta.dirname, 'peers.py'), key, url, TEXT_QUERY, `${folder}/out`],
    env: { PYTHONPATH: python ?? '' },
    rows,
  });
  const table: RawConfig = {
    user: decodeURIComponent(new URL(url).username),
    password: decodeURIComponent(new URL(url).password),
    host: new URL(url).hostname,
    port: Number(new URL(url).port),
    database: new URL(url).pathname.slice(1),
    table_name: TABLE,
  };
  const bucket: RawConfig = {
    bucket_name: s3.bucket,
    region: 'us-east-1',
    prefix: 'out',
    endpoint_url: s3.endpoint,
    aws_access_key_id: s3.accessKeyId,
    aws_secret_access_key: s3.secretAccessKey,
    file_format: 'JSONLines',
    compression: 'zstd',
  };
  const container: RawConfig = {
    container_name: azure.container,
    prefix: 'out',
    account_name: azure.account,
    account_key: azure.key,
    endpoint_url: azure.endpoint,
    file_format: 'JSONLines',
    compression: 'zstd',
  };
  const google: RawConfig = {
    bucket_name: gcs.bucket,
    prefix: 'out',
    service_account_key: JSON.stringify(gcs.keyFile),
    endpoint_url: gcs.endpoint,
    file_format: 'JSONLines',
    compression: 'zstd',
  };
  const events = modelOf('events');
  const prepare = [
    createTableText(postgresFields.parse(table), events.columns.tables, events.table),
    `truncate ${TABLE}`,
    'checkpoint',
  ];

  const lines = 'Sluice, JSON lines, zstd';
  const gzip = 'Sluice, JSON lines, gzip 1';
  const parquet = 'Sluice, Parquet, zstd';
  const toS3 = 'Sluice to S3, JSON lines, zstd';
  const toAzure = 'Sluice to AzureBlob, JSON lines, zstd';
  const toGoogle = 'Sluice to GoogleCloudStorage, JSON lines, zstd';
  const toTable = 'Sluice to Postgres';
  const between = 'psql COPY TO, COPY FROM';
  const zstdPipe = 'psql row_to_json, zstd -3';
  const gzipPipe = 'psql row_to_json, gzip -1';
  const [connectorX, adbc, duckdb] = [
    'ConnectorX stream, pyarrow',
    'ADBC, pyarrow',
    'DuckDB postgres scanner',
  ];
  const over = (of: string, other: string, atLeast: number) => ({ of, goal: { over: other, atLeast } });
  return [
    {
      name: 'zstd',
      ways: [sluice(lines, file('JSONLines', 'zstd')), psql(zstdPipe, 'zstd -3 -q')],
      goals: [over(lines, zstdPipe, 1.8)],
    },
    {
      name: 'gzip',
      ways: [sluice(gzip, file('JSONLines', 'gzip'), { level: 1 }), psql(gzipPipe, 'gzip -1')],
      goals: [over(gzip, gzipPipe, 1.3)],
    },
    {
      name: 'parquet',
      ways: [
        sluice(parquet, file('Parquet', 'zstd')),
        ...(python === undefined
          ? []
          : [peer(connectorX, 'connectorx'), peer(adbc, 'adbc'), peer(duckdb, 'duckdb')]),
      ],
      goals:
        python === undefined
          ? []
          : [over(parquet, connectorX, 1), over(parquet, adbc, 1), over(parquet, duckdb, 0.8)],
    },
    {
      name: 's3',
      ways: [sluice(toS3, { type: 'S3', config: bucket }), sluice(lines, file('JSONLines', 'zstd'))],
      goals: [over(toS3, lines, 0.85)],
    },
    {
      name: 'azure',
      ways: [
        sluice(toAzure, { type: 'AzureBlob', config: container }),
        sluice(lines, file('JSONLines', 'zstd')),
      ],
      goals: [over(toAzure, lines, 0.85)],
    },
    {
      // The parts of a file go one after the other, and the emulator hashes all of the file again for each of them.
      name: 'gcs',
      ways: [
        sluice(toGoogle, { type: 'GoogleCloudStorage', config: google }),
        sluice(lines, file('JSONLines', 'zstd')),
      ],
      goals: [],
    },
    {
      name: 'postgres',
      ways: [
        { ...sluice(toTable, { type: 'Postgres', config: table }), prepare },
        {
          name: between,
          command: shell(
            `psql '${url}' -qc 'copy (${TABLE_QUERY}) to stdout' | psql '${url}' -qc 'copy ${TABLE} from stdin'`,
          ),
          rows,
          prepare,
        },
      ],
      goals: [over(toTable, between, 0.7)],
    },
    {
      name: 'memory',
      ...memory(memorySizes, sluice, file),
    },
  ];
}

function memory(
  sizes: readonly number[],
  sluice: (name: string, settings: Job['settings'], more: { rows: number }) => Way,
  file: (format: string, compression: string) => Job['settings'],
): Pick<Comparison, 'ways' | 'goals'> {
  const ways = sizes.flatMap((rows) => [
    sluice(`JSON lines, zstd, ${rows} rows`, file('JSONLines', 'zstd'), { rows }),
    sluice(`Parquet, zstd, ${rows} rows`, file('Parquet', 'zstd'), { rows }),
  ]);
  return { ways, goals: ways.map(({ name }) => ({ of: name, goal: { growthAtMost: GROWTH } })) };
}
