import type { Queryable } from './pool.ts';
import { updateRow } from './update.ts';

export interface UserRow {
  id: number;
  uuid: string;
  distinct_id: string;
  email: string;
  first_name: string;
  last_name: string;
  is_email_verified: boolean | null;
  is_active: boolean;
  is_staff: boolean;
  role_at_organization: string | null;
  theme_mode: string | null;
  hedgehog_config: Record<string, unknown> | null;
  current_organization_id: string | null;
  current_project_id: number | null;
  date_joined: string;
}

/** What others see of a user. */
export type ShownUser = Pick<
  UserRow,
  | ('id' | 'uuid' | 'distinct_id' | 'first_name' | 'last_name' | 'email')
  | ('is_email_verified' | 'hedgehog_config' | 'role_at_organization')
>;

/** Returns the SQL that selects a ShownUser by a column with an id. Null: there is no such user, or no longer. */
export const shownUser = (column: string): string =>
  `(select json_build_object('id', u.id, 'uuid', u.uuid, 'distinct_id', u.distinct_id, 'first_name', u.first_name,
      'last_name', u.last_name, 'email', u.email, 'is_email_verified', u.is_email_verified,
      'hedgehog_config', u.hedgehog_config, 'role_at_organization', u.role_at_organization)
    from users u where u.id = ${column})`;

/** Finds what others see of users, by their ids. */
export async function findShownUsers(
  queryable: Queryable,
  ids: readonly number[],
): Promise<Map<number, ShownUser>> {
  const { rows } = await queryable.query(
    `select n.id, ${shownUser('n.id')} as shown from unnest($1::int[]) as n (id)`,
    [ids],
  );
  return new Map(rows.flatMap((row) => (row.shown ? [[row.id, row.shown]] : [])));
}

/** Inserts a user and returns the row. Returns undefined if the e-mail address is taken. */
export async function insertUser(
  queryable: Queryable,
  row: Pick<UserRow, 'uuid' | 'distinct_id' | 'email' | 'first_name' | 'last_name'>,
): Promise<UserRow | undefined> {
  const { rows } = await queryable.query(
    `insert into users (uuid, distinct_id, email, first_name, last_name) values ($1, $2, $3, $4, $5)
     on conflict (lower(email)) do nothing returning *`,
    [row.uuid, row.distinct_id, row.email, row.first_name, row.last_name],
  );
  return rows[0];
}

export async function findUser(queryable: Queryable, id: number): Promise<UserRow | undefined> {
  const { rows } = await queryable.query('select * from users where id = $1', [id]);
  return rows[0];
}

export async function findUserByEmail(queryable: Queryable, email: string): Promise<UserRow | undefined> {
  const { rows } = await queryable.query('select * from users where lower(email) = lower($1)', [email]);
  return rows[0];
}

const WRITABLE = [
  'first_name',
  'last_name',
  'role_at_organization',
  'theme_mode',
  'hedgehog_config',
  'is_active',
  'current_organization_id',
  'current_project_id',
] as const;

export type UserPatch = Partial<Pick<UserRow, (typeof WRITABLE)[number]>>;

export async function updateUser(queryable: Queryable, id: number, patch: UserPatch): Promise<void> {
  await updateRow(queryable, 'users', { id }, WRITABLE, patch);
}

export async function listUsers(queryable: Queryable): Promise<UserRow[]> {
  const { rows } = await queryable.query('select * from users order by id');
  return rows;
}
