import type { Queryable, Transaction } from '../../db/pool.ts';
import { storableText } from '../../db/storable-text.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { isUuid } from '../../values/uuid.ts';
import type { ExportKey } from './batch-exports.ts';
import { LOCK_KINDS } from './locks.ts';

export type BackfillStatus =
  | 'Starting'
  | 'Running'
  | 'Completed'
  | 'Failed'
  | 'FailedRetryable'
  | 'Cancelled'
  | 'Terminated'
  | 'TimedOut'
  | 'ContinuedAsNew';

export type EndedBackfillStatus = Exclude<BackfillStatus, 'Starting' | 'Running'>;

export interface BackfillRow {
  project_id: number;
  id: string;
  batch_export_id: string;
  workflow_id: string;
  status: BackfillStatus;
  start_at: string | null;
  end_at: string | null;
  adjusted_start_at: string | null;
  total_runs: number | null;
  total_records_count: number | null;
  latest_error: string | null;
  created_at: string;
  last_updated_at: string;
  finished_at: string | null;
  /**
   * The number of its intervals whose run has ended. Counted while it is in progress; 0 if it ended without completing.
   */
  finished_runs: number;
}

export interface BackfillKey {
  projectId: number;
  backfillId: string;
}

const ACTIVE = "status in ('Starting', 'Running')";
const MAX_ERROR = 10_000;

/**
 * Cancelled runs do not count, because their intervals are not exported. Several runs of an interval count once.
 */
const WITH_PROGRESS = `b.*, case when b.status = 'Completed' then coalesce(b.total_runs, 0) when b.${ACTIVE} then (
  select count(distinct (r.data_interval_start, r.data_interval_end))::int from batch_export_runs r
  where r.project_id = b.project_id and r.backfill_id = b.id
    and r.status in ('Completed', 'Failed', 'FailedRetryable')) else 0 end as finished_runs`;

export interface NewBackfill extends ExportKey {
  id?: string;
  workflowId: string;
  /** The bounds of the range, as texts that Postgres reads. */
  start: string | null;
  end: string | null;
  totalRuns: number | null;
}

/**
 * - `started`: the backfill has begun
 * - `exists`: a backfill of the same range is already in progress
 * - `too_many`: the project has as many backfills in progress as it may have
 */
export type StartedBackfill =
  | { outcome: 'started' | 'exists'; backfill: BackfillRow }
  | { outcome: 'too_many'; active: number };

/** Begins a backfill, unless the project has `most` backfills in progress. */
export async function insertBackfill(
  client: Transaction,
  row: NewBackfill,
  most: number,
): Promise<StartedBackfill> {
  const { projectId, exportId, start, end } = row;
  await client.query('select pg_advisory_xact_lock($1, $2)', [LOCK_KINDS.backfills, projectId]);
  const same = await client.query(
    `select ${WITH_PROGRESS} from batch_export_backfills b
     where project_id = $1 and batch_export_id = $2 and start_at is not distinct from $3::timestamptz
       and end_at is not distinct from $4::timestamptz and ${ACTIVE}`,
    [projectId, exportId, start, end],
  );
  if (same.rows[0]) return { outcome: 'exists', backfill: same.rows[0] };
  const active = await countActiveBackfills(client, projectId);
  if (active >= most) return { outcome: 'too_many', active };
  const { rows } = await client.query(
    `insert into batch_export_backfills
       (project_id, id, batch_export_id, workflow_id, status, start_at, end_at, total_runs)
     values ($1, $2, $3, $4, 'Starting', $5, $6, $7) returning *, 0 as finished_runs`,
    [projectId, row.id ?? uuidv7(), exportId, row.workflowId, start, end, row.totalRuns],
  );
  return { outcome: 'started', backfill: rows[0] };
}

export async function countActiveBackfills(queryable: Queryable, projectId: number): Promise<number> {
  const { rows } = await queryable.query(
    `select count(*)::int as active from batch_export_backfills where project_id = $1 and ${ACTIVE}`,
    [projectId],
  );
  return rows[0].active;
}

export async function findBackfill(
  queryable: Queryable,
  { projectId, backfillId }: BackfillKey,
): Promise<BackfillRow | undefined> {
  const { rows } = await queryable.query(
    `select ${WITH_PROGRESS} from batch_export_backfills b where project_id = $1 and id = $2`,
    [projectId, backfillId],
  );
  return rows[0];
}

/** Finds a backfill by its id alone, for operators, who see all projects. */
export async function findBackfillById(queryable: Queryable, id: string): Promise<BackfillRow | undefined> {
  const { rows } = await queryable.query(
    `select ${WITH_PROGRESS} from (select distinct project_id from batch_exports) p
     join batch_export_backfills b on b.project_id = p.project_id and b.id = $1`,
    [id],
  );
  return rows[0];
}

/**
 * Finds a backfill of an export by its id or by the name of its workflow. Of several with that name it finds the
 * newest.
 */
export async function findBackfillOf(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  name: string,
): Promise<BackfillRow | undefined> {
  const { rows } = await queryable.query(
    `select ${WITH_PROGRESS} from batch_export_backfills b
     where project_id = $1 and batch_export_id = $2 and (id = $3::uuid or workflow_id = $4)
     order by created_at desc, id desc limit 1`,
    [projectId, exportId, isUuid(name) ? name : null, name],
  );
  return rows[0];
}

export interface BackfillPosition {
  /** Null: among the backfills without a beginning, which come before all others. */
  value: string | null;
  id: string;
}

export interface BackfillQuery extends ExportKey {
  ordering: 'created_at' | 'start_at';
  ascending: boolean;
  position?: BackfillPosition;
  limit: number;
}

export async function listBackfills(
  queryable: Queryable,
  query: BackfillQuery,
): Promise<{ rows: BackfillRow[]; next: BackfillPosition | undefined }> {
  const { ordering, ascending, position, limit } = query;
  const values: unknown[] = [query.projectId, query.exportId, limit + 1];
  const place = `coalesce(${ordering}, '-infinity')`;
  const direction = ascending ? 'asc' : 'desc';
  let from = '';
  if (position) {
    values.push(position.value ?? '-infinity', position.id);
    from = `and (${place}, id) ${ascending ? '>' : '<'} ($4::timestamptz, $5::uuid)`;
  }
  const { rows } = await queryable.query(
    `select ${WITH_PROGRESS} from batch_export_backfills b where project_id = $1 and batch_export_id = $2 ${from}
     order by ${place} ${direction}, id ${direction} limit $3`,
    values,
  );
  const last: BackfillRow | undefined = rows.length > limit ? rows[limit - 1] : undefined;
  return { rows: rows.slice(0, limit), next: last && { value: last[ordering], id: last.id } };
}

/** Lists the backfills of an export that are in progress. */
export async function activeBackfills(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
): Promise<BackfillRow[]> {
  const { rows } = await queryable.query(
    `select ${WITH_PROGRESS} from batch_export_backfills b
     where project_id = $1 and batch_export_id = $2 and ${ACTIVE} order by created_at, id`,
    [projectId, exportId],
  );
  return rows;
}

/** Lists the backfills of an export that ended for a reason since an instant. */
export async function backfillsEndedFor(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  { reason, since }: { reason: string; since: string },
): Promise<BackfillRow[]> {
  const { rows } = await queryable.query(
    `select ${WITH_PROGRESS} from batch_export_backfills b
     where project_id = $1 and batch_export_id = $2 and latest_error = $3 and finished_at >= $4
     order by created_at, id`,
    [projectId, exportId, reason, since],
  );
  return rows;
}

/** Lists the backfills of all exports that are in progress by their rows and began before an instant, oldest first. */
export async function listActiveBackfills(
  queryable: Queryable,
  begunBefore: string,
  limit: number,
): Promise<BackfillRow[]> {
  const { rows } = await queryable.query(
    `select ${WITH_PROGRESS} from batch_export_backfills b
     where ${ACTIVE} and created_at < $1 order by created_at, id limit $2`,
    [begunBefore, limit],
  );
  return rows;
}

/** Lists the ends of the intervals in (after, until] that a backfill has completed. */
export async function completedByBackfill(
  queryable: Queryable,
  { projectId, backfillId }: BackfillKey,
  { after, until }: { after: string; until: string },
): Promise<string[]> {
  const { rows } = await queryable.query(
    `select distinct data_interval_end from batch_export_runs
     where project_id = $1 and backfill_id = $2 and status = 'Completed'
       and data_interval_end > $3 and data_interval_end <= $4`,
    [projectId, backfillId, after, until],
  );
  return rows.map((row) => row.data_interval_end);
}

/** Writes down that a backfill is running, and its size as far as it is known. False: it has ended. */
export async function runBackfill(
  queryable: Queryable,
  { projectId, backfillId }: BackfillKey,
  known: { adjustedStart?: string | null; totalRuns?: number | null; totalRecords?: number | null } = {},
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `update batch_export_backfills set status = 'Running', last_updated_at = clock_timestamp(),
       adjusted_start_at = coalesce($3, adjusted_start_at), total_runs = coalesce($4, total_runs),
       total_records_count = coalesce($5, total_records_count)
     where project_id = $1 and id = $2 and ${ACTIVE}`,
    [projectId, backfillId, known.adjustedStart ?? null, known.totalRuns ?? null, known.totalRecords ?? null],
  );
  return rowCount === 1;
}

/**
 * Writes down how a backfill ended, and how many rows its runs exported. False: it had ended before, and nothing
 * changed. Only `exports/ending.ts` calls this.
 */
export async function markBackfillEnded(
  queryable: Queryable,
  { projectId, backfillId }: BackfillKey,
  status: EndedBackfillStatus,
  error: string | null = null,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `update batch_export_backfills b set status = $3, latest_error = $4, last_updated_at = clock_timestamp(),
       finished_at = clock_timestamp(),
       total_records_count = (
         select coalesce(sum(records_completed), 0) from (
           select distinct on (data_interval_start, data_interval_end) records_completed from batch_export_runs r
           where r.project_id = b.project_id and r.backfill_id = b.id and r.status = 'Completed'
           order by data_interval_start, data_interval_end, finished_at desc) as last)
     where project_id = $1 and id = $2 and ${ACTIVE}`,
    [projectId, backfillId, status, error === null ? null : storableText(error, MAX_ERROR)],
  );
  return rowCount === 1;
}

export interface BackfillProgress {
  total_runs: number | null;
  finished_runs: number | null;
  /** 0 to 1, with one decimal. */
  progress: number | null;
}

/** Computes the progress of a backfill. Null: it is not known. */
export function progressOf(row: BackfillRow): BackfillProgress | null {
  if (row.status === 'Completed') {
    return { total_runs: row.total_runs, finished_runs: row.total_runs, progress: 1 };
  }
  if (row.status !== 'Starting' && row.status !== 'Running') return null;
  if (!row.total_runs || (row.start_at === null && row.adjusted_start_at === null)) return null;
  const total = Math.max(row.total_runs, row.finished_runs);
  return {
    total_runs: total,
    finished_runs: row.finished_runs,
    progress: Math.round((row.finished_runs / total) * 10) / 10,
  };
}
