import { z } from 'zod';
import { type BackfillRow, progressOf } from '../../exports/rows/backfills.ts';
import { LOG_LEVELS, type LogRow } from '../../exports/rows/logs.ts';
import { RUN_STATUSES, type RunRow } from '../../exports/rows/runs.ts';
import { timestamp } from '../fields.ts';

const moment = timestamp.nullable();
const count = z.int().nullable();

export const run = z
  .object({
    id: z.guid(),
    batch_export: z.guid(),
    backfill: z.guid().nullable(),
    status: z.enum(RUN_STATUSES),
    data_interval_start: moment.meta({ description: 'Null if the run exports everything up to the end.' }),
    data_interval_end: timestamp,
    records_completed: count,
    records_total_count: count,
    records_failed: count.meta({ description: 'Rows that could not be exported and were left out.' }),
    bytes_exported: count,
    latest_error: z.string().nullable(),
    manifest_key: z.string().nullable(),
    cursor: z.string().nullable().meta({ description: 'Always null; kept for older clients.' }),
    workflow_id: z.string(),
    temporal_url: z.string().meta({ description: 'The page of the run in the Temporal UI.' }),
    created_at: timestamp,
    last_updated_at: timestamp,
    finished_at: moment,
    waiting_since: moment.meta({
      description:
        'Since when the run waits for a place of a worker. Waiting is no failure. Null if it does not wait.',
    }),
  })
  .meta({ id: 'BatchExportRun' });
export type RunView = z.output<typeof run>;

/** Returns the page of a run in the Temporal UI. */
export type RunUrl = (run: Pick<RunRow, 'workflow_id' | 'workflow_run_id'>) => string;

export function runView(row: RunRow, runUrl: RunUrl): RunView {
  return {
    id: row.id,
    batch_export: row.batch_export_id,
    backfill: row.backfill_id,
    status: row.status,
    data_interval_start: row.data_interval_start,
    data_interval_end: row.data_interval_end,
    records_completed: row.records_completed,
    records_total_count: row.records_total_count,
    records_failed: row.records_failed,
    bytes_exported: row.bytes_exported,
    latest_error: row.latest_error,
    manifest_key: row.manifest_key,
    cursor: null,
    workflow_id: row.workflow_id,
    temporal_url: runUrl(row),
    created_at: row.created_at,
    last_updated_at: row.last_updated_at,
    finished_at: row.finished_at,
    waiting_since: row.waiting_since ?? null,
  };
}

export const backfill = z
  .object({
    id: z.guid(),
    team: z.int(),
    batch_export: z.guid(),
    workflow_id: z.string(),
    status: z.enum(RUN_STATUSES).exclude(['FailedBilling']),
    start_at: moment,
    end_at: moment,
    adjusted_start_at: moment.meta({
      description: 'Where the backfill begins, after the time before the first data is skipped.',
    }),
    total_records_count: count,
    latest_error: z.string().nullable(),
    progress: z
      .object({
        total_runs: count,
        finished_runs: count,
        progress: z.number().nullable().meta({ description: 'From 0 to 1, with one decimal.' }),
      })
      .nullable(),
    created_at: timestamp,
    last_updated_at: timestamp,
    finished_at: moment,
  })
  .meta({ id: 'BatchExportBackfill' });

export function backfillView(row: BackfillRow): z.output<typeof backfill> {
  return {
    id: row.id,
    team: row.project_id,
    batch_export: row.batch_export_id,
    workflow_id: row.workflow_id,
    status: row.status,
    start_at: row.start_at,
    end_at: row.end_at,
    adjusted_start_at: row.adjusted_start_at,
    total_records_count: row.total_records_count,
    latest_error: row.latest_error,
    progress: progressOf(row),
    created_at: row.created_at,
    last_updated_at: row.last_updated_at,
    finished_at: row.finished_at,
  };
}

export const logEntry = z
  .object({
    log_source_id: z.guid().meta({ description: 'The id of the batch export.' }),
    instance_id: z.guid().nullable().meta({
      description: 'The id of the run. Null if the entry is not about a single run.',
    }),
    timestamp,
    level: z.enum(LOG_LEVELS),
    message: z.string(),
  })
  .meta({ id: 'BatchExportLogEntry' });

export function logEntryView(row: LogRow): z.output<typeof logEntry> {
  return {
    log_source_id: row.batch_export_id,
    instance_id: row.run_id,
    timestamp: row.timestamp,
    level: row.level,
    message: row.message,
  };
}
