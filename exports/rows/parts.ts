import type { Queryable } from '../../db/pool.ts';
import type { IntervalText } from '../../intervals/index.ts';
import type { ExportKey } from './batch-exports.ts';
import type { RunKey, RunRow } from './runs.ts';

/**
 * "Run now" may export a part of an interval: from the beginning of the interval up to now. A part is known by its end,
 * at which no interval of any length ends.
 */
const STEP_SECONDS = 300;
const ENDS_A_PART = `extract(epoch from data_interval_end) % ${STEP_SECONDS} <> 0`;

export const isPartEnd = (end: string): boolean => Date.parse(end) % (STEP_SECONDS * 1000) !== 0;

/**
 * Lists the runs of parts of an interval that are in progress, or have completed and still have their files. A run
 * whose files were removed has no manifest.
 */
export async function listPartRuns(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  { start, end }: IntervalText,
): Promise<RunRow[]> {
  const { rows } = await queryable.query(
    `select * from batch_export_runs
     where project_id = $1 and batch_export_id = $2 and data_interval_start = $3 and data_interval_end > $3
       and data_interval_end < $4 and ${ENDS_A_PART}
       and (status in ('Starting', 'Running') or (status = 'Completed' and manifest_key is not null))
     order by data_interval_end, id`,
    [projectId, exportId, start, end],
  );
  return rows;
}

/** Finds a run of the same interval that reaches further than a part, so that it exports all rows of the part too. */
export async function findLongerRun(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  { start, end }: IntervalText,
): Promise<RunRow | undefined> {
  const { rows } = await queryable.query(
    `select * from batch_export_runs
     where project_id = $1 and batch_export_id = $2 and data_interval_start = $3 and data_interval_end > $4
       and status in ('Starting', 'Running', 'Completed')
     order by status <> 'Completed', data_interval_end limit 1`,
    [projectId, exportId, start, end],
  );
  return rows[0];
}

/** Writes down that the files of a run were removed. */
export async function forgetManifest(queryable: Queryable, { projectId, runId }: RunKey): Promise<void> {
  await queryable.query(
    'update batch_export_runs set manifest_key = null where project_id = $1 and id = $2',
    [projectId, runId],
  );
}
