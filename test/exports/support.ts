import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { afterAll, beforeAll } from '@jest/globals';
import { type Client, WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import { type Config, loadConfig } from '../../config.ts';
import { ensureEventPartitions } from '../../db/event-partitions.ts';
import { type Pool, transaction } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import type { Limits } from '../../destinations/limits.ts';
import type { Patience } from '../../destinations/retry.ts';
import { sealSettings } from '../../exports/reads/settings.ts';
import { type BackfillRow, insertBackfill } from '../../exports/rows/backfills.ts';
import {
  type BatchExportRow,
  insertBatchExport,
  type NewBatchExport,
} from '../../exports/rows/batch-exports.ts';
import { type LogRow, listLogs } from '../../exports/rows/logs.ts';
import { findRun } from '../../exports/rows/run-lists.ts';
import type { RunRow } from '../../exports/rows/runs.ts';
import { backfillWorkflowId } from '../../exports/rules/workflow-ids.ts';
import type { Rhythm } from '../../exports/runs/rhythm.ts';
import type { ExportRunResult } from '../../exports/temporal.ts';
import { createSchedules, type Schedules } from '../../schedules/schedules.ts';
import { generateKey, parseKeyring } from '../../secrets/envelope.ts';
import { createLogger } from '../../telemetry/logger.ts';
import type { RunningWorker, WorkerDependencies } from '../../worker/worker.ts';
import { databaseForFile, type TestDatabase } from '../support/database.ts';
import { insertEvents } from '../support/rows.ts';
import { allocateNamespace, connectTo } from '../support/temporal.ts';
import { startTestWorker } from '../support/worker.ts';

export const logger = createLogger({ name: 'test', level: 'silent' });
export const HOUR = 3_600_000;
/** The n-th hour of a day of long ago, as an interval. */
export const FIRST = Date.UTC(2026, 2, 2);
export const hour = (n: number) => new Date(FIRST + n * HOUR).toISOString();
export const hourly = (n: number) => ({ start: hour(n), end: hour(n + 1) });

export interface ExportWorld {
  pool: Pool;
  /** Connections of the role that runs what users write. */
  reader: Pool;
  config: Config;
  schedules: Schedules;
  client: Client;
  root: string;
  /** Makes an export in the database; type and config as the API takes them. */
  create(
    type: string,
    config: Record<string, unknown>,
    given?: Partial<NewBatchExport>,
  ): Promise<BatchExportRow>;
  /** Runs an interval now, and answers when it is over. */
  run(row: BatchExportRow, interval: { start: string | null; end: string }): Promise<Finished>;
  start(row: BatchExportRow, interval: { start: string | null; end: string }): Promise<WorkflowHandle>;
  finished(handle: WorkflowHandle): Promise<Finished>;
  runsOf(row: BatchExportRow): Promise<RunRow[]>;
  logsOf(row: BatchExportRow): Promise<LogRow[]>;
  /** A row of backfills, as the API makes it; nothing is started. */
  backfill(row: BatchExportRow, start: string | null, end: string | null): Promise<BackfillRow>;
  startWorker(
    settings?: Record<string, string>,
    workflows?: WorkerDependencies['workflows'],
  ): Promise<RunningWorker>;
  /** Settings for processes of the test's own. */
  variables: Record<string, string>;
  worker: RunningWorker;
}

export interface Finished {
  result: ExportRunResult;
  run: RunRow;
  handle: WorkflowHandle;
}

export interface WorldOptions {
  settings?: () => Record<string, string>;
  patience?: Patience;
  limits?: Partial<Limits>;
  rhythm?: Partial<Rhythm>;
  /** Whether a worker runs from the beginning. */
  worker?: boolean;
  /** Servers of the test's own, which it may do harm to. */
  servers?: () => Promise<{ url: string; pool: Pool; address: string; namespace: string }>;
}

/** A database, a namespace of Temporal, a directory for files and a worker, for the tests of one file. */
export function exportWorldForFile({
  settings,
  patience,
  limits,
  rhythm,
  worker = true,
  servers,
}: WorldOptions = {}): ExportWorld {
  const world = {} as ExportWorld;
  const stops: (() => Promise<unknown>)[] = [];
  // Hooks run in the order of their definition: this one before the database goes.
  afterAll(async () => {
    for (const stop of stops.reverse()) await stop();
    await world.schedules?.close();
    await world.client?.connection.close();
    if (world.root) rmSync(world.root, { recursive: true, force: true });
  });
  const database = servers ? undefined : databaseForFile();

  beforeAll(async () => {
    const { url, pool, address, namespace } = (await servers?.()) ?? {
      url: (database as TestDatabase).url,
      pool: (database as TestDatabase).pool,
      ...allocateNamespace(),
    };
    world.root = mkdtempSync(path.join(tmpdir(), 'sluice-exports-'));
    world.pool = pool;
    world.reader = database?.reader ?? pool;
    const variables: Record<string, string> = {
      DATABASE_URL: url,
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: namespace,
      SLUICE_EXPORT_ROOT: world.root,
      SLUICE_ENCRYPTION_KEYS: generateKey('test'),
      SLUICE_EGRESS_ALLOW: '127.0.0.1,localhost',
      SLUICE_SHUTDOWN_SECONDS: '1',
      ...settings?.(),
    };
    world.variables = variables;
    world.config = loadConfig(variables);
    world.schedules = createSchedules(world.config, logger);
    const channelArgs = { 'grpc.max_reconnect_backoff_ms': 2_000 };
    world.client = await connectTo({ address, namespace }, channelArgs);
    world.startWorker = async (more = {}, workflows = {}) => {
      const config = loadConfig({ ...variables, ...more });
      const running = await startTestWorker({
        config,
        pool,
        schedules: world.schedules,
        rhythm: { report: 200, ...rhythm },
        patience,
        workflows,
        ...(limits ? { limits } : {}),
      });
      let stopped: Promise<void> | undefined;
      const stop = () => {
        stopped ??= running.stop();
        return stopped;
      };
      stops.push(stop);
      return { ...running, stop };
    };
    // Otherwise maintenance makes them, while the tests write to them.
    for (const week of [new Date(FIRST), new Date()]) await ensureEventPartitions(world.pool, week, 1);
    if (worker) world.worker = await world.startWorker();
    else await world.schedules.ensure();
  });

  world.create = (type, config, given = {}) => {
    const id = uuidv7();
    const keyring = parseKeyring(world.config.SLUICE_ENCRYPTION_KEYS as string);
    return insertBatchExport(world.pool, {
      project_id: 1,
      name: 'Lake',
      model: 'events',
      interval: 'hour',
      id,
      ...sealSettings(keyring, id, { type, config }),
      ...given,
    });
  };
  world.backfill = async (row, start, end) => {
    const workflowId = backfillWorkflowId(row.id, { start, end });
    const key = { projectId: row.project_id, exportId: row.id };
    const begun = await transaction(world.pool, (client) =>
      insertBackfill(client, { ...key, workflowId, start, end, totalRuns: null }, 100),
    );
    if (begun.outcome !== 'started') throw new Error(begun.outcome);
    return begun.backfill;
  };
  world.start = async (row, interval) => {
    const { workflowId, workflowRunId } = await world.schedules.exports.startRun(row, interval, 'repair');
    return world.client.workflow.getHandle(workflowId, workflowRunId);
  };
  world.finished = async (handle) => {
    const result = await handle.result().catch(async (error): Promise<ExportRunResult> => {
      if (!(error instanceof WorkflowFailedError)) throw error;
      const { rows } = await world.pool.query(
        'select id, status, records_completed from batch_export_runs where workflow_run_id = $1',
        [(await handle.describe()).runId],
      );
      const [run] = rows as Pick<RunRow, 'id' | 'status' | 'records_completed'>[];
      if (!run) throw error;
      return { runId: run.id, status: run.status, records: run.records_completed ?? 0 };
    });
    const run = await findRun(world.pool, { projectId: 1, runId: result.runId as string });
    return { result, run: run as RunRow, handle };
  };
  world.run = async (row, interval) => world.finished(await world.start(row, interval));
  world.runsOf = async (row) => {
    const { rows } = await world.pool.query(
      `select r.*, p.waiting_since from batch_export_runs r left join batch_export_places p using (project_id, id)
       where r.batch_export_id = $1 order by r.created_at, r.id`,
      [row.id],
    );
    return rows;
  };
  world.logsOf = async (row) =>
    (await listLogs(world.pool, { projectId: row.project_id, exportId: row.id, limit: 500 })).reverse();
  return world;
}

/** `count` events of the n-th hour, spread over it; answers their uuids. */
export async function fillHour(pool: Pool, n: number, count: number, projectId = 1): Promise<string[]> {
  const uuids = Array.from({ length: count }, () => uuidv7());
  const events = uuids.map((uuid, index) => ({
    project_id: projectId,
    uuid,
    event: index % 2 === 0 ? 'bought' : '$pageview',
    properties: { n: index, text: 'é "quoted"' },
    timestamp: new Date(FIRST + n * HOUR + Math.floor((index * HOUR) / count)).toISOString(),
  }));
  for (let from = 0; from < events.length; from += 5_000)
    await insertEvents(pool, events.slice(from, from + 5_000));
  return uuids;
}

/** All files below a directory, by their paths. */
export function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .sort();
}

/** The uuids in all JSON lines below a directory that a manifest names, each as often as it is there. */
export function exportedUuids(folder: string): string[] {
  return filesIn(folder)
    .filter((file) => file.endsWith('_manifest.json'))
    .flatMap((manifest) => {
      const { files } = JSON.parse(readFileSync(path.join(folder, manifest), 'utf8')) as {
        files: { key: string }[];
      };
      return files.flatMap(({ key }) => uuidsOf(readFileSync(path.join(folder, key)), key));
    })
    .sort();
}

export function uuidsOf(bytes: Buffer, name: string): string[] {
  const text = (name.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes).toString('utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).uuid);
}

/** The same in bulk: about a kilobyte each as a line of JSON. */
export async function fillHourInBulk(pool: Pool, n: number, count: number): Promise<void> {
  await pool.query(
    `insert into events
     select 1, gen_random_uuid(), t, t, t, false, 'bulk', 'user', json_build_object('n', n, 'text', repeat(md5(n::text), 20)),
       null, null, '', gen_random_uuid(), 'full', '{}'
     from generate_series(0, $1 - 1) n cross join lateral (
       select $2::timestamptz + n * interval '1 hour' / $1 as t) as made`,
    [count, hour(n)],
  );
}
