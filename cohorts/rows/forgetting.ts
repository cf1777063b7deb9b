import type { Queryable } from '../../db/pool.ts';
import type { VersionTables } from '../../db/versions.ts';

export const COHORT_VERSIONS: VersionTables = {
  ...{ things: 'cohorts', versions: 'cohort_revisions', thing: 'cohort_id', thingType: 'integer' },
  ...{ madeAt: 'changed_at', content: ['document'], isDeleted: 't.deleted' },
};

/** Persons that one statement takes out of a cohort. */
const MEMBERS_AT_ONCE = 20_000;

/** Deletes cohorts for good that are marked as deleted and still have these versions, and their members. */
export async function forgetCohorts(
  queryable: Queryable,
  projectId: number,
  last: readonly { thing: number | string; version: number }[],
): Promise<void> {
  const { rows } = await queryable.query(
    `delete from cohorts c using json_to_recordset($2) as o (thing integer, version integer)
     where c.project_id = $1 and c.id = o.thing and c.version = o.version and c.deleted returning c.id`,
    [projectId, JSON.stringify(last)],
  );
  const ids = rows.map((row) => row.id);
  for (let some = MEMBERS_AT_ONCE; ids.length > 0 && some === MEMBERS_AT_ONCE; ) {
    const { rowCount } = await queryable.query(
      `delete from cohort_people where ctid = any(array(
         select ctid from cohort_people where project_id = $1 and cohort_id = any($2::int[]) limit $3))
       and project_id = $1 and cohort_id = any($2::int[])`,
      [projectId, ids, MEMBERS_AT_ONCE],
    );
    some = rowCount ?? 0;
  }
}
