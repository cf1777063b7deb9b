import type { Queryable } from '../../db/pool.ts';
import type { ExportKey } from './batch-exports.ts';

/** A pause of an export. A trigger on `batch_exports` writes these rows, whoever pauses or resumes the export. */
export interface PauseRow {
  paused_at: string;
  /** Null: the export is still paused. */
  resumed_at: string | null;
}

/** Lists the pauses of an export that lasted beyond `after`, in their order. */
export async function listPauses(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  after: string,
): Promise<PauseRow[]> {
  const { rows } = await queryable.query(
    `select paused_at, resumed_at from batch_export_pauses
     where project_id = $1 and batch_export_id = $2 and (resumed_at is null or resumed_at > $3) order by paused_at`,
    [projectId, exportId, after],
  );
  return rows;
}
