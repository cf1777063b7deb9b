import type { Queryable } from '../../db/pool.ts';
import type { SourceContent } from '../rules/source.ts';
import type { FunctionKey, FunctionRow } from './functions.ts';

/** A change of a function that does not run yet. */
export interface DraftRow {
  content: SourceContent;
  /** The secret inputs that it replaces, sealed by `reads/secrets.ts`. Null: it replaces none. */
  secrets: string | null;
  /** Which secret inputs it replaces. */
  secret_keys: FunctionRow['secret_keys'];
  /** The version of the function with which it began. */
  base_version: number;
  updated_at: string;
}

export async function findDraft(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
): Promise<DraftRow | undefined> {
  const { rows } = await queryable.query(
    `select content, secrets, secret_keys, base_version, updated_at from function_drafts
     where project_id = $1 and function_id = $2`,
    [projectId, functionId],
  );
  return rows[0];
}

/** Stores the draft of a function in the place of another one. Callers hold the lock on the function. */
export async function putDraft(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  { content, secrets, secret_keys, base_version }: Omit<DraftRow, 'updated_at'>,
): Promise<void> {
  await queryable.query(
    `insert into function_drafts (project_id, function_id, content, secrets, secret_keys, base_version)
     values ($1, $2, $3, $4, $5, $6)
     on conflict (project_id, function_id) do update set content = excluded.content, secrets = excluded.secrets,
       secret_keys = excluded.secret_keys, base_version = excluded.base_version, updated_at = clock_timestamp()`,
    [projectId, functionId, JSON.stringify(content), secrets, JSON.stringify(secret_keys), base_version],
  );
}

/** Deletes the draft of a function. False: it has none. Callers hold the lock on the function. */
export async function deleteDraft(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    'delete from function_drafts where project_id = $1 and function_id = $2',
    [projectId, functionId],
  );
  return rowCount === 1;
}
