// The queries about runs. `runs.ts` has the statements that change a run.
import type { Queryable } from '../../db/pool.ts';
import type { BackfillRow } from './backfills.ts';
import type { ExportKey } from './batch-exports.ts';
import type { RunKey, RunRow, RunStatus } from './runs.ts';

/** Since when a run `r` waits for a place of a worker. */
const WAITING_SINCE = `(select p.waiting_since from batch_export_places p
  where p.project_id = r.project_id and p.id = r.id) as waiting_since`;

export async function findRun(
  queryable: Queryable,
  { projectId, runId }: RunKey,
): Promise<RunRow | undefined> {
  const { rows } = await queryable.query(
    `select r.*, ${WAITING_SINCE} from batch_export_runs r where project_id = $1 and id = $2`,
    [projectId, runId],
  );
  return rows[0];
}

/**
 * Finds a run by its id alone, for operators, who see all projects. Goes through the projects that have exports,
 * because the key of the table begins with the project.
 */
export async function findRunById(queryable: Queryable, id: string): Promise<RunRow | undefined> {
  const { rows } = await queryable.query(
    `select r.* from (select distinct project_id from batch_exports) p
     join batch_export_runs r on r.project_id = p.project_id and r.id = $1`,
    [id],
  );
  return rows[0];
}

/** Finds the run of a workflow. Undefined: the workflow has not made its run yet. */
export async function findRunOfWorkflow(
  queryable: Queryable,
  projectId: number,
  workflowRunId: string,
): Promise<RunRow | undefined> {
  const { rows } = await queryable.query(
    'select * from batch_export_runs where project_id = $1 and workflow_run_id = $2',
    [projectId, workflowRunId],
  );
  return rows[0];
}

/** A position in an ordered list. A page begins after it. */
export interface RunPosition {
  value: string;
  id: string;
}

export interface RunQuery extends ExportKey {
  ordering: 'created_at' | 'data_interval_start';
  ascending: boolean;
  /**
   * Runs made in [from, to], or, ordered by interval, runs whose interval lies within. As texts that Postgres reads.
   */
  from: string;
  to: string;
  statuses?: readonly RunStatus[];
  position?: RunPosition;
  limit: number;
}

/** Lists a page of an export's runs. Pages that continue at `next` show each run once, even if runs begin meanwhile. */
export async function listRuns(
  queryable: Queryable,
  query: RunQuery,
): Promise<{ rows: RunRow[]; next: RunPosition | undefined }> {
  const { ordering, ascending, statuses, position, limit } = query;
  const values: unknown[] = [query.projectId, query.exportId, query.from, query.to];
  const given = (value: unknown) => `$${values.push(value)}`;
  const conditions = ['project_id = $1', 'batch_export_id = $2'];
  if (ordering === 'created_at') conditions.push('created_at >= $3', 'created_at <= $4');
  // The last condition follows from the first, and is the one that the index knows.
  else conditions.push('data_interval_start >= $3', 'data_interval_end <= $4', 'data_interval_end >= $3');
  if (statuses && statuses.length > 0) conditions.push(`status = any(${given(statuses)})`);
  if (position) {
    const place = `(${given(position.value)}::timestamptz, ${given(position.id)}::uuid)`;
    conditions.push(`(${ordering}, id) ${ascending ? '>' : '<'} ${place}`);
  }
  const direction = ascending ? 'asc' : 'desc';
  const { rows } = await queryable.query(
    `select r.*, ${WAITING_SINCE} from batch_export_runs r where ${conditions.join(' and ')}
     order by ${ordering} ${direction}, id ${direction} limit ${given(limit + 1)}`,
    values,
  );
  const last: RunRow | undefined = rows.length > limit ? rows[limit - 1] : undefined;
  return {
    rows: rows.slice(0, limit),
    next: last && { value: last[ordering] as string, id: last.id },
  };
}

/** Lists the newest runs of each of these exports, newest first, by export id. */
export async function latestRuns(
  queryable: Queryable,
  exports: readonly ExportKey[],
  each: number,
): Promise<Map<string, RunRow[]>> {
  const { rows } = await queryable.query(
    `select r.*, ${WAITING_SINCE} from unnest($1::int[], $2::uuid[]) as wanted (project_id, id)
     cross join lateral (
       select * from batch_export_runs r where r.project_id = wanted.project_id and r.batch_export_id = wanted.id
       order by r.created_at desc, r.id desc limit $3) as r
     order by r.created_at desc, r.id desc`,
    [exports.map((one) => one.projectId), exports.map((one) => one.exportId), each],
  );
  const found = new Map<string, RunRow[]>(exports.map((one) => [one.exportId, []]));
  for (const row of rows as RunRow[]) found.get(row.batch_export_id)?.push(row);
  return found;
}

/** Lists the runs of an export, or of one of its backfills, that are in progress. */
export async function activeRuns(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  backfillId: string | null = null,
): Promise<RunRow[]> {
  const { rows } = await queryable.query(
    `select * from batch_export_runs
     where project_id = $1 and batch_export_id = $2 and status in ('Starting', 'Running')
       and ($3::uuid is null or backfill_id = $3)
     order by created_at, id`,
    [projectId, exportId, backfillId],
  );
  return rows;
}

/** Lists the runs of some backfills that ended for a reason since an instant. */
export async function runsEndedFor(
  queryable: Queryable,
  backfills: readonly Pick<BackfillRow, 'project_id' | 'id'>[],
  { reason, since }: { reason: string; since: string },
): Promise<RunRow[]> {
  const { rows } = await queryable.query(
    `select r.* from unnest($1::int[], $2::uuid[]) as wanted (project_id, backfill_id)
     join batch_export_runs r on r.project_id = wanted.project_id and r.backfill_id = wanted.backfill_id
     where r.latest_error = $3 and r.finished_at >= $4 order by r.created_at, r.id`,
    [backfills.map((one) => one.project_id), backfills.map((one) => one.id), reason, since],
  );
  return rows;
}

/**
 * Lists the runs of all exports that are in progress by their rows but have reported nothing since an instant. The run
 * that reported first comes first.
 */
export async function listQuietRuns(queryable: Queryable, since: string, limit: number): Promise<RunRow[]> {
  const { rows } = await queryable.query(
    `select * from batch_export_runs where status in ('Starting', 'Running') and last_updated_at < $1
     order by last_updated_at, id limit $2`,
    [since, limit],
  );
  return rows;
}

/**
 * Counts how many of the last `window` runs that ended since an instant have failed. The automatic pause depends on it.
 */
export async function countRecentFailures(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  window: number,
  since: string | null = null,
  /** Runs whose workflow ids begin so do not count. */
  leftOut: string | null = null,
): Promise<number> {
  const { rows } = await queryable.query(
    `select count(*) filter (where status = 'Failed')::int as failed from (
       select status from batch_export_runs
       where project_id = $1 and batch_export_id = $2 and finished_at is not null
         and ($4::timestamptz is null or finished_at > $4) and ($5::text is null or not starts_with(workflow_id, $5))
       order by last_updated_at desc, id desc limit $3) as recent`,
    [projectId, exportId, window, since, leftOut],
  );
  return rows[0].failed;
}

/** Finds the run of an export that completed last among those that began before another one. */
export async function completedBefore(
  queryable: Queryable,
  { project_id, batch_export_id, id, created_at }: RunRow,
): Promise<RunRow | undefined> {
  const { rows } = await queryable.query(
    `select * from batch_export_runs
     where project_id = $1 and batch_export_id = $2 and (created_at, id) < ($3::timestamptz, $4::uuid) and status = 'Completed'
     order by created_at desc, id desc limit 1`,
    [project_id, batch_export_id, created_at, id],
  );
  return rows[0];
}

/** What the runs of one interval did. */
export interface IntervalOutcome {
  data_interval_start: string | null;
  data_interval_end: string;
  runs: number;
  completed: boolean;
  active: boolean;
  /** The last run, whether it completed or not. */
  run_id: string;
  status: RunStatus;
  latest_error: string | null;
  /** The last run that completed. The fields below are of that run. */
  completed_run_id: string | null;
  records_completed: number | null;
  records_failed: number | null;
  records_total_count: number | null;
  content_hash: string | null;
  manifest_key: string | null;
}

const LAST = 'order by created_at desc, id desc';
const lastCompleted = (column: string, name = column) =>
  `(array_agg(${column} ${LAST}) filter (where status = 'Completed'))[1] as ${name}`;

/** Lists the intervals that ended in (after, until] and had a run, in their order. */
export async function listIntervalOutcomes(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  { after, until }: { after: string; until: string },
): Promise<IntervalOutcome[]> {
  const { rows } = await queryable.query(
    `select data_interval_start, data_interval_end, count(*)::int as runs, bool_or(status = 'Completed') as completed,
       bool_or(status in ('Starting', 'Running')) as active,
       (array_agg(id ${LAST}))[1] as run_id, (array_agg(status ${LAST}))[1] as status,
       (array_agg(latest_error ${LAST}))[1] as latest_error,
       ${lastCompleted('id', 'completed_run_id')}, ${lastCompleted('records_completed')},
       ${lastCompleted('records_failed')}, ${lastCompleted('records_total_count')},
       ${lastCompleted('content_hash')}, ${lastCompleted('manifest_key')}
     from batch_export_runs
     where project_id = $1 and batch_export_id = $2 and data_interval_end > $3 and data_interval_end <= $4
     group by data_interval_start, data_interval_end
     order by data_interval_end, data_interval_start`,
    [projectId, exportId, after, until],
  );
  return rows;
}

/** Which intervals of an export had runs, and how these ended. Each interval is written as `start-end`, in milliseconds. */
export interface IntervalMarks {
  completed: ReadonlySet<string>;
  active: ReadonlySet<string>;
  /** A run of it ended in another way. */
  ended: ReadonlySet<string>;
}

const milliseconds = (column: string) => `(date_part('epoch', ${column}) * 1000)::int8`;
const marks = (condition: string) =>
  `string_agg(${milliseconds('data_interval_start')} || '-' || ${milliseconds('data_interval_end')}, ' ')
     filter (where ${condition})`;
const marked = (text: string | null): ReadonlySet<string> => new Set(text === null ? [] : text.split(' '));

/**
 * Finds which intervals of each of these exports had runs, by export id: those that ended in (after, until]. Much less
 * than `listIntervalOutcomes` has, and much cheaper. Runs without a beginning are left out.
 */
export async function markIntervals(
  queryable: Queryable,
  exports: readonly (ExportKey & { after: string })[],
  until: string,
): Promise<Map<string, IntervalMarks>> {
  const { rows } = await queryable.query(
    `select wanted.id, completed, active, ended
     from unnest($1::int[], $2::uuid[], $3::timestamptz[]) as wanted (project_id, id, after)
     cross join lateral (
       select ${marks("status = 'Completed'")} as completed, ${marks("status in ('Starting', 'Running')")} as active,
         ${marks("status not in ('Completed', 'Starting', 'Running')")} as ended
       from batch_export_runs r
       where r.project_id = wanted.project_id and r.batch_export_id = wanted.id
         and data_interval_end > wanted.after and data_interval_end <= $4 and data_interval_start is not null) as found`,
    [
      ...[exports.map((one) => one.projectId), exports.map((one) => one.exportId)],
      ...[exports.map((one) => one.after), until],
    ],
  );
  return new Map(
    rows.map(({ id, completed, active, ended }) => [
      id,
      { completed: marked(completed), active: marked(active), ended: marked(ended) },
    ]),
  );
}

/** Lists completed runs without a beginning that end after an instant. */
export async function listWholeRuns(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  after: string,
): Promise<RunRow[]> {
  const { rows } = await queryable.query(
    `select * from batch_export_runs
     where project_id = $1 and batch_export_id = $2 and data_interval_start is null and data_interval_end > $3
       and status = 'Completed' order by data_interval_end desc limit 100`,
    [projectId, exportId, after],
  );
  return rows;
}

/** Finds the last run that completed this interval. Verification compares with it. */
export async function findCompletedRun(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  { start, end }: { start: string | null; end: string },
): Promise<RunRow | undefined> {
  const { rows } = await queryable.query(
    `select * from batch_export_runs
     where project_id = $1 and batch_export_id = $2 and data_interval_start is not distinct from $3::timestamptz
       and data_interval_end = $4 and status = 'Completed'
     order by finished_at desc, id desc limit 1`,
    [projectId, exportId, start, end],
  );
  return rows[0];
}
