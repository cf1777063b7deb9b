import type { Queryable } from '../../db/pool.ts';
import type { FunctionRow } from './functions.ts';

/** Lists functions of a project with secrets, theirs or those of their drafts, in the order of their ids. */
export async function pageSecretHolders(
  queryable: Queryable,
  projectId: number,
  afterId: string | null,
  limit: number,
): Promise<SecretHolder[]> {
  const { rows } = await queryable.query(
    `select f.id, f.name, f.type, f.enabled, f.updated_at, f.secrets, d.secrets as draft_secrets
     from functions f left join function_drafts d on d.project_id = f.project_id and d.function_id = f.id
     where f.project_id = $1 and f.deleted_at is null and (f.secrets is not null or d.secrets is not null)
       and ($2::uuid is null or f.id > $2) order by f.id limit $3`,
    [projectId, afterId, limit],
  );
  return rows;
}

/** A function whose secrets somebody looks through. */
export interface SecretHolder
  extends Pick<FunctionRow, 'id' | 'name' | 'type' | 'enabled' | 'updated_at' | 'secrets'> {
  draft_secrets: string | null;
}
