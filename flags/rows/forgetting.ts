import type { Queryable } from '../../db/pool.ts';
import type { VersionTables } from '../../db/versions.ts';

export const FLAG_VERSIONS: VersionTables = {
  ...{ things: 'feature_flags', versions: 'feature_flag_revisions', thing: 'flag_id', thingType: 'integer' },
  ...{ madeAt: 'changed_at', content: ['document'], isDeleted: 't.deleted' },
};

/** Deletes flags for good that are marked as deleted and still have these versions, and all that was planned or set for them. */
export async function forgetFlags(
  queryable: Queryable,
  projectId: number,
  last: readonly { thing: number | string; version: number }[],
): Promise<void> {
  const { rows } = await queryable.query(
    `delete from feature_flags f using json_to_recordset($2) as o (thing integer, version integer)
     where f.project_id = $1 and f.id = o.thing and f.version = o.version and f.deleted returning f.id`,
    [projectId, JSON.stringify(last)],
  );
  const ids = rows.map((row) => row.id);
  if (ids.length === 0) return;
  for (const table of ['overrides', 'rollouts', 'scheduled_changes']) {
    await queryable.query(
      `delete from feature_flag_${table} where project_id = $1 and flag_id = any($2::int[])`,
      [projectId, ids],
    );
  }
}

/**
 * Deletes scheduled changes that were tried and rollouts that are over, except for the last ones of each project, as many as
 * are kept and fit into so many bytes on the disk. Looks at projects in which one ended lately, and in the course of an hour at
 * all.
 */
export async function expirePlans(
  queryable: Queryable,
  { kept, bytes, days, limit, now }: { kept: number; bytes: number; days: number; limit: number; now: Date },
): Promise<number> {
  let deleted = 0;
  for (const { table, over, document } of OVER) {
    const { rowCount } = await queryable.query(
      `delete from ${table} where ctid = any(array(
         select ctid from (
           select ctid, ${over} as over_at, row_number() over (partition by project_id order by ${over} desc) as number,
             sum(pg_column_size(${document})) over (partition by project_id order by ${over} desc) as bytes
           from ${table} where ${over} is not null and (project_id % 60 = $4
             or project_id in (select project_id from ${table} where ${over} > $5::timestamptz - interval '10 minutes'))
           ) as tried
         where number > $1 or bytes > $6 or over_at < $5::timestamptz - make_interval(days => $2)
         limit $3)) and ${over} is not null`,
      [kept, days, limit, now.getUTCMinutes(), now, bytes],
    );
    deleted += rowCount ?? 0;
  }
  return deleted;
}

const OVER = [
  { table: 'feature_flag_scheduled_changes', over: 'executed_at', document: 'payload' },
  { table: 'feature_flag_rollouts', over: 'finished_at', document: 'condition' },
] as const;
