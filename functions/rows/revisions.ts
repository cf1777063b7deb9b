import type { Queryable } from '../../db/pool.ts';
import type { UserRow } from '../../db/users.ts';
import type { SourceContent } from '../rules/source.ts';
import type { FunctionKey, FunctionRow } from './functions.ts';

/** A version of a function. */
export interface RevisionSummary {
  version: number;
  created_at: string;
  creator: UserRow | null;
}

/** A version of a function, with what it was made of. */
export interface RevisionRow extends RevisionSummary {
  content: SourceContent;
  /** All its secret inputs, sealed by `reads/secrets.ts`. Null: it had none. */
  secrets: string | null;
  secret_keys: FunctionRow['secret_keys'];
}

export interface NewRevision extends Omit<RevisionRow, 'creator' | 'created_at'> {
  created_by: number | null;
  /** Default: now. */
  created_at?: string;
}

/** Stores a version of a function. A version that is there already stays. */
export async function insertRevision(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  row: NewRevision,
): Promise<void> {
  await queryable.query(
    `insert into function_revisions (project_id, function_id, version, content, secrets, secret_keys, created_by, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, coalesce($8::timestamptz, clock_timestamp())) on conflict do nothing`,
    [
      ...[projectId, functionId, row.version, JSON.stringify(row.content), row.secrets],
      ...[JSON.stringify(row.secret_keys), row.created_by, row.created_at ?? null],
    ],
  );
}

/** Answers whether a version of a function is stored. */
export async function hasRevision(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  version: number,
): Promise<boolean> {
  const { rows } = await queryable.query(
    'select from function_revisions where project_id = $1 and function_id = $2 and version = $3',
    [projectId, functionId, version],
  );
  return rows.length > 0;
}

/** Deletes all but the newest revisions of a function. */
export async function pruneRevisions(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  kept: number,
): Promise<void> {
  await queryable.query(
    `delete from function_revisions where project_id = $1 and function_id = $2 and version <= (
       select version from function_revisions where project_id = $1 and function_id = $2
       order by version desc offset $3 limit 1)`,
    [projectId, functionId, kept],
  );
}

/** Lists the revisions of a function, the newest first, without their content. */
export async function listRevisions(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ count: number; rows: RevisionSummary[] }> {
  const counted = await queryable.query(
    'select count(*)::int as count from function_revisions where project_id = $1 and function_id = $2',
    [projectId, functionId],
  );
  const { rows } = await queryable.query(
    `select r.version, r.created_at, to_json(u) as creator
     from function_revisions r left join users u on u.id = r.created_by
     where r.project_id = $1 and r.function_id = $2 order by r.version desc limit $3 offset $4`,
    [projectId, functionId, limit, offset],
  );
  return { count: counted.rows[0].count, rows };
}

/** Finds a version of a function. */
export async function findRevision(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  version: number,
): Promise<RevisionRow | undefined> {
  const { rows } = await queryable.query(
    `select r.version, r.created_at, r.content, r.secrets, r.secret_keys, to_json(u) as creator
     from function_revisions r left join users u on u.id = r.created_by
     where r.project_id = $1 and r.function_id = $2 and r.version = $3`,
    [projectId, functionId, version],
  );
  return rows[0];
}
