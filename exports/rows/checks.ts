import type { Queryable } from '../../db/pool.ts';
import { storableText } from '../../db/storable-text.ts';
import type { IntervalText } from '../../intervals/index.ts';
import type { ModelName } from '../../models/index.ts';
import type { ExportKey } from './batch-exports.ts';
import type { RunRow } from './runs.ts';

export type CheckState = 'same' | 'differs' | 'missing' | 'expired';

export interface CheckRow {
  data_interval_start: string | null;
  data_interval_end: string;
  state: CheckState;
  run_id: string | null;
  source_rows: number | null;
  content_hash: string | null;
  problem: string | null;
  repairs: number;
  repaired_at: string | null;
  checked_at: string;
}

export interface Check extends IntervalText {
  state: CheckState;
  runId: string | null;
  sourceRows: number | null;
  contentHash: string | null;
  problem: string | null;
  /** Whether another run damaged the files of the completed run, so that the interval is exported again. */
  isDamaged?: boolean;
}

const MAX_PROBLEM = 10_000;

/** Writes down the results of checks. An interval keeps its last one. */
export async function recordChecks(
  queryable: Queryable,
  checks: readonly (ExportKey & Check)[],
): Promise<void> {
  if (checks.length === 0) return;
  await queryable.query(
    `insert into batch_export_checks as known (project_id, batch_export_id, data_interval_start, data_interval_end, state, run_id,
       source_rows, content_hash, problem, damaged)
     select * from unnest($1::int[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::text[], $6::uuid[], $7::bigint[],
       $8::text[], $9::text[], $10::boolean[])
     on conflict (project_id, batch_export_id, data_interval_end, data_interval_start) do update set
       state = excluded.state, run_id = excluded.run_id, source_rows = excluded.source_rows,
       content_hash = excluded.content_hash, problem = excluded.problem, checked_at = clock_timestamp(),
       damaged = excluded.damaged or (known.damaged and excluded.state = 'differs' and known.run_id = excluded.run_id)`,
    [
      ...[checks.map((one) => one.projectId), checks.map((one) => one.exportId)],
      ...[checks.map((one) => one.start), checks.map((one) => one.end)],
      ...[checks.map((one) => one.state), checks.map((one) => one.runId)],
      ...[checks.map((one) => one.sourceRows), checks.map((one) => one.contentHash)],
      checks.map(({ problem }) => (problem === null ? null : storableText(problem, MAX_PROBLEM))),
      checks.map((one) => one.isDamaged ?? false),
    ],
  );
}

/** Lists the checks of the intervals that ended in (after, until], in their order. */
export async function listChecks(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  { after, until }: { after: string; until: string },
): Promise<CheckRow[]> {
  const { rows } = await queryable.query(
    `select data_interval_start, data_interval_end, state, run_id, source_rows, content_hash, problem, repairs,
       repaired_at, checked_at
     from batch_export_checks
     where project_id = $1 and batch_export_id = $2 and data_interval_end > $3 and data_interval_end <= $4
     order by data_interval_end, data_interval_start`,
    [projectId, exportId, after, until],
  );
  return rows;
}

/** Answers which of these exports have damaged intervals, or missing or different ones that ended after an instant. */
export async function findOpenChecks(
  queryable: Queryable,
  exports: readonly (ExportKey & { after: string })[],
): Promise<Set<string>> {
  const { rows } = await queryable.query(
    `select distinct c.batch_export_id as id
     from unnest($1::int[], $2::uuid[], $3::timestamptz[]) as wanted (project_id, id, after)
     join batch_export_checks c on c.project_id = wanted.project_id and c.batch_export_id = wanted.id
     where (damaged or state in ('missing', 'differs')) and (damaged or data_interval_end > wanted.after)`,
    [
      exports.map((one) => one.projectId),
      exports.map((one) => one.exportId),
      exports.map((one) => one.after),
    ],
  );
  return new Set(rows.map((one) => one.id));
}

/**
 * Lists the damaged intervals of an export that no run has exported again since, and none exports now, in their order.
 */
export async function listDamaged(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  limit: number,
): Promise<CheckRow[]> {
  const { rows } = await queryable.query(
    `select data_interval_start, data_interval_end, state, run_id, source_rows, content_hash, problem, repairs,
       repaired_at, checked_at
     from batch_export_checks c
     where project_id = $1 and batch_export_id = $2 and damaged and not exists (
       select from batch_export_runs r
       where r.project_id = c.project_id and r.batch_export_id = c.batch_export_id
         and r.data_interval_end = c.data_interval_end
         and r.data_interval_start is not distinct from c.data_interval_start
         and (r.status in ('Starting', 'Running') or (r.status = 'Completed' and r.finished_at > c.checked_at)))
     order by data_interval_end, data_interval_start limit $3`,
    [projectId, exportId, limit],
  );
  return rows;
}

/** Counts that a missing interval is started again. False: somebody else has just done so. */
export async function noteRepair(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  { start, end }: IntervalText,
  repairsBefore: number,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `update batch_export_checks set repairs = repairs + 1, repaired_at = clock_timestamp()
     where project_id = $1 and batch_export_id = $2 and data_interval_start is not distinct from $3::timestamptz
       and data_interval_end = $4 and repairs = $5`,
    [projectId, exportId, start, end, repairsBefore],
  );
  return rowCount === 1;
}

/** Deletes the records that intervals are missing. Call it when they are completed, or not due any more. */
export async function clearMissing(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  ends: readonly string[],
): Promise<void> {
  if (ends.length === 0) return;
  await queryable.query(
    `delete from batch_export_checks
     where project_id = $1 and batch_export_id = $2 and data_interval_end = any($3::timestamptz[]) and state = 'missing'
       and run_id is null`,
    [projectId, exportId, ends],
  );
}

/**
 * Lists completed runs of some models, created since an instant, that were never compared with the database, oldest first.
 * Only the last run of an interval counts, and only if its export still has the same settings. Runs without a beginning
 * are left out.
 */
export async function listUncheckedRuns(
  queryable: Queryable,
  models: readonly ModelName[],
  since: string,
  limit: number,
): Promise<RunRow[]> {
  const { rows } = await queryable.query(
    `select r.* from batch_export_runs r
     join batch_exports e on e.project_id = r.project_id and e.id = r.batch_export_id
     where r.created_at >= $1 and r.status = 'Completed' and r.data_interval_start is not null
       and e.model = any($3) and e.deleted_at is null and e.last_updated_at <= r.created_at
       and not exists (
         select from batch_export_checks c
         where c.project_id = r.project_id and c.batch_export_id = r.batch_export_id and c.run_id = r.id
           and c.data_interval_end = r.data_interval_end and c.data_interval_start = r.data_interval_start)
       and not exists (
         select from batch_export_runs n
         where n.project_id = r.project_id and n.batch_export_id = r.batch_export_id and n.status = 'Completed'
           and n.data_interval_end = r.data_interval_end and n.data_interval_start = r.data_interval_start
           and (n.finished_at, n.id) > (r.finished_at, r.id))
     order by r.created_at, r.id limit $2`,
    [since, limit, models],
  );
  return rows;
}
