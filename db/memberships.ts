import { containsPattern } from './like.ts';
import type { Queryable } from './pool.ts';
import type { UserRow } from './users.ts';

export interface MembershipRow {
  id: string;
  organization_id: string;
  user_id: number;
  level: number;
  joined_at: string;
  updated_at: string;
}

export interface MemberRow extends MembershipRow {
  user: Pick<
    UserRow,
    | 'id'
    | 'uuid'
    | 'distinct_id'
    | 'first_name'
    | 'last_name'
    | 'email'
    | 'is_email_verified'
    | 'hedgehog_config'
    | 'role_at_organization'
  >;
  last_login: string | null;
}

export async function insertMembership(
  queryable: Queryable,
  row: Pick<MembershipRow, 'id' | 'organization_id' | 'user_id' | 'level'>,
): Promise<void> {
  await queryable.query(
    'insert into organization_memberships (id, organization_id, user_id, level) values ($1, $2, $3, $4)',
    [row.id, row.organization_id, row.user_id, row.level],
  );
}

/** Users have keys only, so the last use of any of a user's keys is the last login. */
const MEMBER_VIEW = `
  select m.*, json_build_object('id', u.id, 'uuid', u.uuid, 'distinct_id', u.distinct_id, 'first_name', u.first_name,
      'last_name', u.last_name, 'email', u.email, 'is_email_verified', u.is_email_verified,
      'hedgehog_config', u.hedgehog_config, 'role_at_organization', u.role_at_organization) as user,
    (select max(last_used_at) from personal_api_keys where user_id = u.id) as last_login
  from organization_memberships m join users u on u.id = m.user_id and u.is_active
  where m.organization_id = $1`;

export async function listMembers(
  queryable: Queryable,
  organizationId: string,
  options: {
    order: 'joined_at' | '-joined_at';
    limit: number;
    offset: number;
    /** Matches in any case. */
    email?: string | undefined;
    /** Texts that the email, the first or the last name has in it, each of them, in any case. */
    search?: readonly string[] | undefined;
  },
): Promise<{ count: number; rows: MemberRow[] }> {
  const where = `and ($2::text is null or lower(u.email) = lower($2)) and not exists (
    select from unnest($3::text[]) as pattern where not coalesce(
      u.email ilike pattern or u.first_name ilike pattern or u.last_name ilike pattern, false))`;
  const values = [organizationId, options.email ?? null, (options.search ?? []).map(containsPattern)];
  const counted = await queryable.query(
    `select count(*)::int as count from organization_memberships m join users u on u.id = m.user_id and u.is_active
     where m.organization_id = $1 ${where}`,
    values,
  );
  const direction = options.order === 'joined_at' ? 'asc' : 'desc';
  const { rows } = await queryable.query(
    `${MEMBER_VIEW} ${where} order by m.joined_at ${direction}, m.id ${direction} limit $4 offset $5`,
    [...values, options.limit, options.offset],
  );
  return { count: counted.rows[0].count, rows };
}

export async function findMember(
  queryable: Queryable,
  organizationId: string,
  userUuid: string,
): Promise<MemberRow | undefined> {
  const { rows } = await queryable.query(`${MEMBER_VIEW} and u.uuid = $2`, [organizationId, userUuid]);
  return rows[0];
}

export async function setLevel(queryable: Queryable, id: string, level: number): Promise<void> {
  await queryable.query('update organization_memberships set level = $2, updated_at = now() where id = $1', [
    id,
    level,
  ]);
}

export async function deleteMembership(queryable: Queryable, id: string): Promise<void> {
  await queryable.query('delete from organization_memberships where id = $1', [id]);
}

/** Locks the memberships of an organization, so that two changes of its owner cannot cross. */
export async function lockMemberships(queryable: Queryable, organizationId: string): Promise<void> {
  await queryable.query(
    'select id from organization_memberships where organization_id = $1 order by id for update',
    [organizationId],
  );
}

/** Counts how many of these organizations the user is a member of. */
export async function countMemberships(
  queryable: Queryable,
  userId: number,
  organizationIds: readonly string[],
): Promise<number> {
  const { rows } = await queryable.query(
    'select count(*)::int as count from organization_memberships where user_id = $1 and organization_id = any($2)',
    [userId, organizationIds],
  );
  return rows[0].count;
}
