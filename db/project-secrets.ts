import type { Queryable } from './pool.ts';

/** A project whose secret token a request shows. */
export interface SecretProjectRow {
  id: number;
  organization_id: string;
  api_token: string;
}

/** Finds the project that has a secret token, or has it as its backup, by the hash of the token. */
export async function findProjectBySecret(
  queryable: Queryable,
  hash: string,
): Promise<SecretProjectRow | undefined> {
  const { rows } = await queryable.query(
    `select id, organization_id, api_token from projects
     where secret_api_token_hash = $1 or secret_api_token_backup_hash = $1`,
    [hash],
  );
  return rows[0];
}

/** A stored secret token without a hash, from an earlier version. */
export interface UnhashedSecret {
  id: number;
  secret_api_token: string | null;
  secret_api_token_backup: string | null;
}

/** Lists projects with a secret token that cannot be found by its hash yet. */
export async function listUnhashedSecrets(queryable: Queryable, limit: number): Promise<UnhashedSecret[]> {
  const { rows } = await queryable.query(
    `select id, secret_api_token, secret_api_token_backup from projects
     where (secret_api_token is not null and secret_api_token_hash is null)
       or (secret_api_token_backup is not null and secret_api_token_backup_hash is null)
     order by id limit $1`,
    [limit],
  );
  return rows;
}

/** Stores the hashes of tokens, unless the tokens were changed meanwhile. */
export async function putSecretHashes(
  queryable: Queryable,
  project: UnhashedSecret,
  hashes: { token: string | null; backup: string | null },
): Promise<void> {
  await queryable.query(
    `update projects set secret_api_token_hash = $4, secret_api_token_backup_hash = $5
     where id = $1 and secret_api_token is not distinct from $2 and secret_api_token_backup is not distinct from $3`,
    [project.id, project.secret_api_token, project.secret_api_token_backup, hashes.token, hashes.backup],
  );
}
