import type { Queryable } from '../../db/pool.ts';
import type { FunctionRow } from './functions.ts';

/** Returns the version of a project's enabled transformations. Null: it has none, or there is no such project. */
export async function transformationVersion(queryable: Queryable, projectId: number): Promise<number | null> {
  const { rows } = await queryable.query({
    name: 'transformation-version',
    text: 'select transformations from projects where id = $1',
    values: [projectId],
  });
  return rows[0]?.transformations ?? null;
}

/** Lists the enabled transformations of a project, in the order in which they run. */
export async function enabledTransformations(
  queryable: Queryable,
  projectId: number,
): Promise<FunctionRow[]> {
  const { rows } = await queryable.query(
    `select * from functions
     where project_id = $1 and type = 'transformation' and enabled and deleted_at is null
     order by execution_order nulls last, created_at, id`,
    [projectId],
  );
  return rows;
}
