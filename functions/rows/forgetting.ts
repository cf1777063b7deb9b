import type { Queryable, Transaction } from '../../db/pool.ts';
import type { VersionTables } from '../../db/versions.ts';

/** A function that is deleted keeps its versions until it is forgotten. */
export const FUNCTION_VERSIONS: VersionTables = {
  ...{ things: 'functions', versions: 'function_revisions', thing: 'function_id', thingType: 'uuid' },
  ...{ madeAt: 'created_at', content: ['content', 'secrets'], isDeleted: 'false' },
};

const SIZED = ['hog', 'inputs_schema', 'inputs', 'filters', 'mappings', 'secrets', 'bytecode', 'transpiled'];
const ROW_BYTES = 500;

/**
 * Finds functions of a project that were deleted so many days ago, or before others that have so many bytes with their
 * versions. The one that was deleted first comes first.
 */
export async function oldDeletedFunctions(
  queryable: Queryable,
  projectId: number,
  { days, bytes, limit }: { days: number; bytes: number; limit: number },
): Promise<string[]> {
  const size = SIZED.map((column) => `coalesce(pg_column_size(f.${column}), 0)`).join(' + ');
  const { rows } = await queryable.query(
    `with gone as (
       select f.id, f.deleted_at, ${size} + ${ROW_BYTES} + coalesce((
         select sum(pg_column_size(r.content) + coalesce(pg_column_size(r.secrets), 0)) from function_revisions r
         where r.project_id = f.project_id and r.function_id = f.id), 0) as bytes
       from functions f where f.project_id = $1 and f.deleted_at is not null),
     ranked as (
       select *, sum(bytes) over (order by deleted_at desc, id desc rows unbounded preceding) as newer_bytes from gone)
     select id from ranked where newer_bytes > $2 or deleted_at < clock_timestamp() - make_interval(days => $3)
     order by deleted_at, id limit $4`,
    [projectId, bytes, days, limit],
  );
  return rows.map((row) => row.id);
}

/**
 * Deletes a function for good that is marked as deleted, with its versions and its draft. One for which invocations wait stays
 * until they are cancelled.
 */
export async function forgetFunction(
  client: Transaction,
  projectId: number,
  functionId: string,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `delete from functions f where f.project_id = $1 and f.id = $2 and f.deleted_at is not null and not exists (
       select from function_queue q where q.project_id = f.project_id and q.function_id = f.id)`,
    [projectId, functionId],
  );
  if (rowCount === 0) return false;
  for (const table of ['function_revisions', 'function_drafts', 'function_states']) {
    await client.query(`delete from ${table} where project_id = $1 and function_id = $2`, [
      projectId,
      functionId,
    ]);
  }
  return true;
}

/** Names the projects whose deleted functions are to be looked at now. In the course of an hour, these are all. */
export async function projectsWithDeletions(queryable: Queryable, now: Date): Promise<number[]> {
  const { rows } = await queryable.query(
    `select distinct project_id from functions
     where deleted_at > $1::timestamptz - interval '10 minutes' or (deleted_at is not null and project_id % 60 = $2)
     order by 1`,
    [now, now.getUTCMinutes()],
  );
  return rows.map((row) => row.project_id);
}
