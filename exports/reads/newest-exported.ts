import type { Queryable } from '../../db/pool.ts';
import { type IntervalText, intervalText } from '../../intervals/index.ts';
import { type BatchExportRow, keyOf } from '../rows/batch-exports.ts';
import { listRuns } from '../rows/run-lists.ts';

/** Finds the newest interval that a run has completed. Undefined: there is none. */
export async function newestExported(
  queryable: Queryable,
  row: BatchExportRow,
  now: number,
): Promise<IntervalText | undefined> {
  const { rows } = await listRuns(queryable, {
    ...keyOf(row),
    ordering: 'data_interval_start',
    ascending: false,
    from: '-infinity',
    to: new Date(now).toISOString(),
    statuses: ['Completed'],
    limit: 1,
  });
  const [run] = rows;
  return run && intervalText({ start: run.data_interval_start, end: run.data_interval_end });
}
