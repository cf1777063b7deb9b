import type { Queryable } from '../../db/pool.ts';
import { fits } from '../../db/reading.ts';
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

/** Lists the versions of a flag, newest first. Where they are large, there are fewer than `limit`. */
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
    `select ${COLUMNS} from (
       select *, row_number() over (order by version desc) as number,
         sum(octet_length(document::text)) over (order by version desc rows unbounded preceding) as bytes
       from (select * from feature_flag_revisions where project_id = $1 and flag_id = $2
         order by version desc limit $3 offset $4) as shown) as r
     where ${fits('r')} order by r.version desc`,
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
