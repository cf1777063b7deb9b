// The statements that change a run: it begins, is attempted, reports progress, and ends. `run-lists.ts` has the
// queries.
import type { Queryable } from '../../db/pool.ts';
import { storableText } from '../../db/storable-text.ts';
import { uuidv7 } from '../../db/uuid.ts';
import type { ExportKey } from './batch-exports.ts';

export const RUN_STATUSES = [
  ...([
    'Starting',
    'Running',
    'Completed',
    'Failed',
    'FailedRetryable',
    'FailedBilling',
    'Cancelled',
  ] as const),
  ...(['Terminated', 'TimedOut', 'ContinuedAsNew'] as const),
] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

export interface RunRow {
  project_id: number;
  id: string;
  batch_export_id: string;
  backfill_id: string | null;
  workflow_id: string;
  workflow_run_id: string;
  status: RunStatus;
  data_interval_start: string | null;
  data_interval_end: string;
  fence: number;
  records_completed: number | null;
  records_total_count: number | null;
  records_failed: number | null;
  bytes_exported: number | null;
  content_hash: string | null;
  manifest_key: string | null;
  latest_error: string | null;
  created_at: string;
  last_updated_at: string;
  finished_at: string | null;
  /** Since when it waits for a place of a worker. Only queries that show runs say so. */
  waiting_since?: string | null;
}

export interface RunKey {
  projectId: number;
  runId: string;
}

export interface NewRun extends ExportKey {
  workflowId: string;
  /** Temporal's id of the run of the workflow. Starting a run again with the same id finds the same row. */
  workflowRunId: string;
  backfillId?: string | null;
  /** As texts that Postgres reads. */
  start: string | null;
  end: string;
}

/**
 * - `started`: the run is in progress, and the caller holds its fence
 * - `over`: the run of this workflow has ended already
 * - `busy`: another run exports the interval right now
 */
export type StartedRun =
  | { outcome: 'started'; run: RunRow; isNew: boolean }
  | { outcome: 'over'; run: RunRow }
  | { outcome: 'busy'; run: RunRow };

const ACTIVE = "status in ('Starting', 'Running')";
const NEXT_FENCE = "nextval('batch_export_fences')";
const MAX_ERROR = 10_000;

/** Begins a run, or continues it as another attempt. An interval has one active run at a time. */
export async function startRun(queryable: Queryable, run: NewRun): Promise<StartedRun> {
  const { projectId, exportId, workflowRunId, start, end } = run;
  for (;;) {
    const inserted = await queryable.query(
      `insert into batch_export_runs (project_id, id, batch_export_id, backfill_id, workflow_id, workflow_run_id, status,
         data_interval_start, data_interval_end, fence)
       values ($1, $2, $3, $4, $5, $6, 'Starting', $7, $8, ${NEXT_FENCE})
       on conflict do nothing returning *`,
      [projectId, uuidv7(), exportId, run.backfillId ?? null, run.workflowId, workflowRunId, start, end],
    );
    if (inserted.rows[0]) return { outcome: 'started', run: inserted.rows[0], isNew: true };
    const again = await queryable.query(
      `update batch_export_runs set fence = ${NEXT_FENCE}, last_updated_at = clock_timestamp()
       where project_id = $1 and workflow_run_id = $2 and ${ACTIVE} returning *`,
      [projectId, workflowRunId],
    );
    if (again.rows[0]) return { outcome: 'started', run: again.rows[0], isNew: false };
    const known = await queryable.query(
      'select * from batch_export_runs where project_id = $1 and workflow_run_id = $2',
      [projectId, workflowRunId],
    );
    if (known.rows[0]) return { outcome: 'over', run: known.rows[0] };
    const other = await queryable.query(
      `select * from batch_export_runs
       where project_id = $1 and batch_export_id = $2 and data_interval_start is not distinct from $3::timestamptz
         and data_interval_end = $4 and ${ACTIVE}`,
      [projectId, exportId, start, end],
    );
    if (other.rows[0]) return { outcome: 'busy', run: other.rows[0] };
    // The other run ended between two statements: the interval is free.
  }
}

/** Begins an attempt. From now on only its fence is valid. Undefined: the run has ended. */
export async function beginAttempt(queryable: Queryable, key: RunKey): Promise<RunRow | undefined> {
  const { rows } = await queryable.query(
    `update batch_export_runs set status = 'Running', fence = ${NEXT_FENCE}, last_updated_at = clock_timestamp()
     where project_id = $1 and id = $2 and ${ACTIVE} returning *`,
    [key.projectId, key.runId],
  );
  return rows[0];
}

export interface RunTotals {
  records_completed?: number;
  records_total_count?: number;
  records_failed?: number;
  bytes_exported?: number;
  content_hash?: string;
  manifest_key?: string;
}

const TOTALS = `records_completed = coalesce($4, records_completed),
  records_total_count = coalesce($5, records_total_count), records_failed = coalesce($6, records_failed),
  bytes_exported = coalesce($7, bytes_exported), content_hash = coalesce($8, content_hash),
  manifest_key = coalesce($9, manifest_key)`;
const totalsOf = (totals: RunTotals) => [
  totals.records_completed ?? null,
  totals.records_total_count ?? null,
  totals.records_failed ?? null,
  totals.bytes_exported ?? null,
  totals.content_hash ?? null,
  totals.manifest_key ?? null,
];

/** The export of the run is not deleted. When it is deleted, the run must stop, even before somebody cancels it. */
const EXPORT_STAYS = `not exists (
  select from batch_exports e
  where e.project_id = r.project_id and e.id = r.batch_export_id and e.deleted_at is not null)`;

/**
 * Writes down the progress of an attempt. False: it must stop, because another attempt has taken over or the run has
 * ended.
 */
export async function recordProgress(
  queryable: Queryable,
  key: RunKey,
  fence: number,
  totals: RunTotals,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `update batch_export_runs r set ${TOTALS}, last_updated_at = clock_timestamp()
     where project_id = $1 and id = $2 and fence = $3 and status = 'Running' and ${EXPORT_STAYS}`,
    [key.projectId, key.runId, fence, ...totalsOf(totals)],
  );
  return rowCount === 1;
}

/**
 * Writes down why an attempt failed, or what it waits for. The run shows it until the next attempt ends. Null: it goes
 * on.
 */
export async function recordTrouble(
  queryable: Queryable,
  key: RunKey,
  fence: number,
  error: string | null,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `update batch_export_runs set latest_error = $4, last_updated_at = clock_timestamp()
     where project_id = $1 and id = $2 and fence = $3 and status = 'Running'`,
    [key.projectId, key.runId, fence, error === null ? null : storableText(error, MAX_ERROR)],
  );
  return rowCount === 1;
}

/** The attempt has the place of a worker that it began in, if it had to take one. */
const inPlace = (fence: string) => `(${fence}::bigint is null or exists (
  select from batch_export_places p where p.project_id = r.project_id and p.id = r.id and p.fence = ${fence}))`;

/**
 * Answers whether an attempt may still change anything. Ask before each step that cannot be undone. `place` is the fence
 * of its place.
 */
export async function holdsFence(
  queryable: Queryable,
  key: RunKey,
  fence: number,
  place?: number,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `select from batch_export_runs r
     where project_id = $1 and id = $2 and fence = $3 and status = 'Running' and ${EXPORT_STAYS} and ${inPlace('$4')}`,
    [key.projectId, key.runId, fence, place ?? null],
  );
  return rowCount === 1;
}

/** Counts the end of a run. This is part of the statement that ends it, so that each run is counted once. */
const counted = (kind: string, name: string) => `counted as (
  insert into batch_export_metrics as known (project_id, batch_export_id, hour, kind, name, count)
  select project_id, batch_export_id, date_trunc('hour', finished_at), one.kind, one.name, one.count
  from ended cross join lateral (
    values ('${kind}', '${name}', 1::bigint), ('rows', 'rows_exported', records_completed)) as one (kind, name, count)
  where one.count > 0 and (one.kind <> 'rows' or status = 'Completed')
  order by one.kind, one.name
  on conflict (project_id, batch_export_id, hour, kind, name) do update set count = known.count + excluded.count)`;

/** Completes a run. Undefined: the attempt has lost its fence or its place, and nothing changed. */
export async function completeRun(
  queryable: Queryable,
  key: RunKey,
  fence: number,
  totals: RunTotals,
  place?: number,
): Promise<RunRow | undefined> {
  const { rows } = await queryable.query(
    `with ended as (
       update batch_export_runs r set ${TOTALS}, status = 'Completed', latest_error = null,
         last_updated_at = clock_timestamp(), finished_at = clock_timestamp()
       where project_id = $1 and id = $2 and fence = $3 and status = 'Running' and ${inPlace('$10')} returning *),
     ${counted('success', 'succeeded')}
     select * from ended`,
    [key.projectId, key.runId, fence, ...totalsOf(totals), place ?? null],
  );
  return rows[0];
}

export type RunFailure = Exclude<RunStatus, 'Starting' | 'Running' | 'Completed'>;

const METRIC: Record<RunFailure, [kind: string, name: string]> = {
  Failed: ['failure', 'failed'],
  FailedRetryable: ['failure', 'failed'],
  FailedBilling: ['failure', 'failed_billing'],
  Cancelled: ['cancellation', 'canceled'],
  Terminated: ['failure', 'failed'],
  TimedOut: ['failure', 'failed'],
  ContinuedAsNew: ['cancellation', 'canceled'],
};

/**
 * Writes down how a run ended that did not complete, and takes the fence from the attempt in progress. A run that waits
 * for a place leaves the queue. Undefined: the run had ended before, and nothing changed. Only `exports/ending.ts` calls
 * this.
 */
export async function markRunEnded(
  queryable: Queryable,
  key: RunKey,
  status: RunFailure,
  error: string | null,
): Promise<RunRow | undefined> {
  const { rows } = await queryable.query(
    `with ended as (
       update batch_export_runs set status = $3, latest_error = $4, fence = ${NEXT_FENCE},
         last_updated_at = clock_timestamp(), finished_at = clock_timestamp()
       where project_id = $1 and id = $2 and ${ACTIVE} returning *),
     ${counted(...METRIC[status])},
     left_the_queue as (
       delete from batch_export_places p using ended
       where p.project_id = ended.project_id and p.id = ended.id and p.worker is null)
     select * from ended`,
    [key.projectId, key.runId, status, error === null ? null : storableText(error, MAX_ERROR)],
  );
  return rows[0];
}
