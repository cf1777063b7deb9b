import type { Queryable } from '../../db/pool.ts';
import type { ModelName } from '../../models/index.ts';
import type { BatchExportRow } from './batch-exports.ts';

/** A run that read the interval in which an event lies. */
export interface RunOverEvent {
  run_id: string;
  batch_export_id: string;
  backfill_id: string | null;
  data_interval_start: string | null;
  data_interval_end: string;
  finished_at: string | null;
  manifest_key: string | null;
}

/** An export of events, and its completed runs over an event. */
export interface ExportOverEvent
  extends Pick<
    BatchExportRow,
    | 'id'
    | 'name'
    | 'project_id'
    | 'model'
    | 'destination_type'
    | 'config'
    | 'timezone'
    | 'filters'
    | 'hogql_query'
  > {
  runs: RunOverEvent[];
}

/** Lists exports of some models, whose rows are events, with completed runs whose interval contains a time. */
export async function exportsOverTime(
  queryable: Queryable,
  projectId: number,
  models: readonly ModelName[],
  insertedAt: string,
  limit: number,
): Promise<ExportOverEvent[]> {
  const { rows } = await queryable.query(
    `select b.project_id, b.id, b.name, b.model, b.destination_type, b.config, b.timezone, b.filters, b.hogql_query,
       (select coalesce(json_agg(r order by r.finished_at), '[]') from (
          select id as run_id, batch_export_id, backfill_id, data_interval_start, data_interval_end, finished_at, manifest_key
          from batch_export_runs r
          where r.project_id = b.project_id and r.batch_export_id = b.id and r.status = 'Completed'
            and r.data_interval_end > $2::timestamptz
            and (r.data_interval_start is null or r.data_interval_start <= $2::timestamptz)
          order by r.data_interval_end limit 20) r) as runs
     from batch_exports b
     where b.project_id = $1 and b.model = any($4) and exists (
       select from batch_export_runs r where r.project_id = b.project_id and r.batch_export_id = b.id
         and r.status = 'Completed' and r.data_interval_end > $2::timestamptz
         and (r.data_interval_start is null or r.data_interval_start <= $2::timestamptz))
     order by b.created_at, b.id limit $3`,
    [projectId, insertedAt, limit, models],
  );
  return rows;
}
