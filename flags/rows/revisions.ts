import type { Queryable } from '../../db/pool.ts';
import { type ShownUser, shownUser } from '../../db/users.ts';
import type { FlagKey } from './flags.ts';

export interface RevisionRow {
  version: number;
  changed_at: string;
  changed_by: ShownUser | null;
  /** JSON, spelled as it was stored. */
  document: string;
}

const COLUMNS = `r.version, r.changed_at, ${shownUser('r.changed_by')} as changed_by, r.document::text as document`;

/** Lists the versions of a flag, newest first. */
export async function listRevisions(
  queryable: Queryable,
  { projectId, flagId }: FlagKey,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ count: number; rows: RevisionRow[] }> {
  const counted = await queryable.query(
    'select count(*)::int as count from feature_flag_revisions where project_id = $1 and flag_id = $2',
    [projectId, flagId],
  );
  const { rows } = await queryable.query(
    `select ${COLUMNS} from feature_flag_revisions r where r.project_id = $1 and r.flag_id = $2
     order by r.version desc limit $3 offset $4`,
    [projectId, flagId, limit, offset],
  );
  return { count: counted.rows[0].count, rows };
}

export async function findRevision(
  queryable: Queryable,
  { projectId, flagId }: FlagKey,
  version: number,
): Promise<RevisionRow | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from feature_flag_revisions r
     where r.project_id = $1 and r.flag_id = $2 and r.version = $3`,
    [projectId, flagId, version],
  );
  return rows[0];
}
