import type { Queryable } from './pool.ts';
import { updateRow } from './update.ts';
import type { UserRow } from './users.ts';

export interface PersonalApiKeyRow {
  id: string;
  user_id: number;
  label: string;
  secure_value: string;
  mask_value: string;
  scopes: string[];
  scoped_teams: number[];
  scoped_organizations: string[];
  created_at: string;
  last_used_at: string | null;
  last_rolled_at: string | null;
  expires_at: string | null;
}

export interface Credential {
  key: PersonalApiKeyRow;
  user: UserRow;
}

/** Finds the key with this hash, and its user. The key must not have expired and the user must be active. */
export async function findCredential(
  queryable: Queryable,
  secureValue: string,
): Promise<Credential | undefined> {
  const { rows } = await queryable.query(
    `select k.*, to_jsonb(u) as user from personal_api_keys k join users u on u.id = k.user_id
     where k.secure_value = $1 and u.is_active and (k.expires_at is null or k.expires_at > now())`,
    [secureValue],
  );
  if (!rows[0]) return undefined;
  const { user, ...key } = rows[0];
  return { key, user };
}

/** Answers whether somebody has the key with this hash, usable or not. */
export async function hasPersonalApiKey(queryable: Queryable, secureValue: string): Promise<boolean> {
  const { rows } = await queryable.query('select from personal_api_keys where secure_value = $1', [
    secureValue,
  ]);
  return rows.length > 0;
}

/** Records that a key is used, at most once an hour, so that reading costs no write. */
export async function touchPersonalApiKey(queryable: Queryable, id: string): Promise<void> {
  await queryable.query(
    `update personal_api_keys set last_used_at = now()
     where id = $1 and (last_used_at is null or last_used_at < now() - interval '1 hour')`,
    [id],
  );
}

export async function insertPersonalApiKey(
  queryable: Queryable,
  row: Pick<
    PersonalApiKeyRow,
    | 'id'
    | 'user_id'
    | 'label'
    | 'secure_value'
    | 'mask_value'
    | 'scopes'
    | 'scoped_teams'
    | 'scoped_organizations'
  > & { expires_at?: string | null },
): Promise<PersonalApiKeyRow> {
  const { rows } = await queryable.query(
    `insert into personal_api_keys
       (id, user_id, label, secure_value, mask_value, scopes, scoped_teams, scoped_organizations, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning *`,
    [
      row.id,
      row.user_id,
      row.label,
      row.secure_value,
      row.mask_value,
      row.scopes,
      row.scoped_teams,
      row.scoped_organizations,
      row.expires_at ?? null,
    ],
  );
  return rows[0];
}

export async function listPersonalApiKeys(
  queryable: Queryable,
  userId: number,
): Promise<PersonalApiKeyRow[]> {
  const { rows } = await queryable.query(
    'select * from personal_api_keys where user_id = $1 order by created_at desc, id',
    [userId],
  );
  return rows;
}

export async function findPersonalApiKey(
  queryable: Queryable,
  userId: number,
  id: string,
): Promise<PersonalApiKeyRow | undefined> {
  const { rows } = await queryable.query('select * from personal_api_keys where user_id = $1 and id = $2', [
    userId,
    id,
  ]);
  return rows[0];
}

const WRITABLE = [
  'label',
  'scopes',
  'scoped_teams',
  'scoped_organizations',
  'expires_at',
  'secure_value',
  'mask_value',
  'last_rolled_at',
] as const;

export type PersonalApiKeyPatch = Partial<Pick<PersonalApiKeyRow, (typeof WRITABLE)[number]>>;

export async function updatePersonalApiKey(
  queryable: Queryable,
  id: string,
  patch: PersonalApiKeyPatch,
): Promise<void> {
  await updateRow(queryable, 'personal_api_keys', { id }, WRITABLE, patch);
}

export async function deletePersonalApiKey(queryable: Queryable, id: string): Promise<void> {
  await queryable.query('delete from personal_api_keys where id = $1', [id]);
}

/**
 * Locks the keys of a user until the transaction ends and returns their number, so that the limit on their number
 * holds. A stronger lock would make writers of rows that refer to the user wait. They change the user next, which would
 * be a deadlock.
 */
export async function lockUserKeys(queryable: Queryable, userId: number): Promise<number> {
  await queryable.query('select id from users where id = $1 for no key update', [userId]);
  const { rows } = await queryable.query(
    'select count(*)::int as count from personal_api_keys where user_id = $1',
    [userId],
  );
  return rows[0].count;
}

export async function findPersonalApiKeyById(
  queryable: Queryable,
  id: string,
): Promise<PersonalApiKeyRow | undefined> {
  const { rows } = await queryable.query('select * from personal_api_keys where id = $1', [id]);
  return rows[0];
}
