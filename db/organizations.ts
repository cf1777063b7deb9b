import type { Queryable } from './pool.ts';
import { updateRow } from './update.ts';

/** A project as the answers about its organization show it. */
export interface ProjectSummaryRow {
  id: number;
  uuid: string;
  organization_id: string;
  name: string;
  api_token: string;
  timezone: string;
  is_demo: boolean;
  completed_snippet_onboarding: boolean;
  has_completed_onboarding_for: Record<string, unknown>;
  ingested_event: boolean;
  access_control: boolean;
}

export interface OrganizationRow {
  id: string;
  name: string;
  slug: string;
  logo_media_id: string | null;
  created_at: string;
  updated_at: string;
  customer_id: string | null;
  is_member_join_email_enabled: boolean;
  enforce_2fa: boolean | null;
  members_can_invite: boolean | null;
  members_can_use_personal_api_keys: boolean;
  is_ai_data_processing_approved: boolean | null;
  default_experiment_stats_method: 'bayesian' | 'frequentist' | null;
  environments_rollback_at: string | null;
}

/** An organization as one of its members sees it. */
export interface MemberOrganizationRow extends OrganizationRow {
  membership_level: number;
  member_count: number;
  projects: ProjectSummaryRow[];
}

const SUMMARY = `id, uuid, organization_id, name, api_token, timezone, is_demo, completed_snippet_onboarding,
  has_completed_onboarding_for, ingested_event, access_control`;

const MEMBER_VIEW = `
  select o.*, m.level as membership_level,
    (select count(*)::int from organization_memberships c join users u on u.id = c.user_id
      where c.organization_id = o.id and u.is_active) as member_count,
    coalesce((select json_agg(p order by p.id) from (
      select ${SUMMARY} from projects where organization_id = o.id) p), '[]') as projects
  from organizations o
  join organization_memberships m on m.organization_id = o.id and m.user_id = $1`;

/** Inserts an organization. Returns false if the slug is taken. */
export async function insertOrganization(
  queryable: Queryable,
  row: { id: string; name: string; slug: string },
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    'insert into organizations (id, name, slug) values ($1, $2, $3) on conflict (slug) do nothing',
    [row.id, row.name, row.slug],
  );
  return rowCount === 1;
}

export async function findMemberOrganization(
  queryable: Queryable,
  userId: number,
  id: string,
): Promise<MemberOrganizationRow | undefined> {
  const { rows } = await queryable.query(`${MEMBER_VIEW} where o.id = $2`, [userId, id]);
  return rows[0];
}

/** Whether the organization admits the member's personal API keys. `requireStanding` in api/access.ts decides alike. */
const ADMITS_KEYS = '(o.members_can_use_personal_api_keys or m.level >= 8)';

/** Lists the organizations of a user, oldest first, without those that do not admit the user's keys. */
export async function listMemberOrganizations(
  queryable: Queryable,
  userId: number,
  options: { only?: readonly string[]; limit: number; offset: number },
): Promise<{ count: number; rows: MemberOrganizationRow[] }> {
  const only = options.only && options.only.length > 0 ? options.only : null;
  const counted = await queryable.query(
    `select count(*)::int as count from organizations o
     join organization_memberships m on m.organization_id = o.id and m.user_id = $1
     where ($2::uuid[] is null or o.id = any($2)) and ${ADMITS_KEYS}`,
    [userId, only],
  );
  const { rows } = await queryable.query(
    `${MEMBER_VIEW} where ($2::uuid[] is null or o.id = any($2)) and ${ADMITS_KEYS} order by o.created_at, o.id limit $3 offset $4`,
    [userId, only, options.limit, options.offset],
  );
  return { count: counted.rows[0].count, rows };
}

const WRITABLE = [
  'name',
  'logo_media_id',
  'is_member_join_email_enabled',
  'enforce_2fa',
  'members_can_invite',
  'members_can_use_personal_api_keys',
  'is_ai_data_processing_approved',
  'default_experiment_stats_method',
] as const;

export type OrganizationPatch = Partial<Pick<OrganizationRow, (typeof WRITABLE)[number]>>;

export async function updateOrganization(
  queryable: Queryable,
  id: string,
  patch: OrganizationPatch,
): Promise<void> {
  await updateRow(queryable, 'organizations', { id }, WRITABLE, patch, { stamp: true });
}

export async function deleteOrganization(queryable: Queryable, id: string): Promise<void> {
  await queryable.query('delete from organizations where id = $1', [id]);
}

/** Marks the rollback as done. Returns false if it was done before. */
export async function markEnvironmentsRollback(queryable: Queryable, id: string): Promise<boolean> {
  const { rowCount } = await queryable.query(
    'update organizations set environments_rollback_at = now() where id = $1 and environments_rollback_at is null',
    [id],
  );
  return rowCount === 1;
}

export async function countOrganizations(queryable: Queryable): Promise<number> {
  const { rows } = await queryable.query('select count(*)::int as count from organizations');
  return rows[0].count;
}

/** The organization and the project that a user works in. */
export interface CurrentPlace {
  organization_id: string | null;
  project_id: number | null;
}

/**
 * Returns the organization and the project that the user chose last. If they were deleted, the user has left them or the
 * key does not reach them, returns the first ones that it reaches instead.
 */
export async function findCurrentPlace(
  queryable: Queryable,
  userId: number,
  bounds: { projects: readonly number[]; organizations: readonly string[] },
): Promise<CurrentPlace> {
  const orNull = <T>(list: readonly T[]) => (list.length > 0 ? list : null);
  const { rows } = await queryable.query(
    `select o.id as organization_id, p.id as project_id
     from users u
     join organization_memberships m on m.user_id = u.id
     join organizations o on o.id = m.organization_id
     left join lateral (
       select id from projects where organization_id = o.id and ($2::int[] is null or id = any($2))
       order by id is not distinct from u.current_project_id desc, id limit 1) p on true
     where u.id = $1 and ($3::uuid[] is null or o.id = any($3)) and ($2::int[] is null or p.id is not null)
     order by o.id is not distinct from u.current_organization_id desc, o.created_at, o.id limit 1`,
    [userId, orNull(bounds.projects), orNull(bounds.organizations)],
  );
  return rows[0] ?? { organization_id: null, project_id: null };
}

/**
 * Returns the user's level in an organization, and keeps the organization from being deleted until the transaction
 * ends.
 */
export async function lockOrganization(
  queryable: Queryable,
  userId: number,
  id: string,
): Promise<{ level: number } | undefined> {
  const { rows } = await queryable.query(
    `select m.level from organizations o join organization_memberships m on m.organization_id = o.id and m.user_id = $1
     where o.id = $2 for share of o`,
    [userId, id],
  );
  return rows[0];
}

/**
 * Keeps projects from being added to the organization or removed from it until the transaction ends. Returns false if
 * the organization is gone.
 */
export async function lockProjectsOf(queryable: Queryable, id: string): Promise<boolean> {
  const { rowCount } = await queryable.query('select 1 from organizations where id = $1 for update', [id]);
  return rowCount === 1;
}

/** Finds the organization with this id or slug. Returns all organizations if no name is given. */
export async function findOrganizationByName(
  queryable: Queryable,
  name?: string,
): Promise<OrganizationRow[]> {
  const { rows } = await queryable.query(
    'select * from organizations where $1::text is null or id::text = $1 or slug = $1 order by created_at, id',
    [name ?? null],
  );
  return rows;
}

/** Counts the organizations in which a user has this level. Until the transaction ends, nobody else counts them. */
export async function lockOwnedOrganizations(
  queryable: Queryable,
  userId: number,
  level: number,
): Promise<number> {
  await queryable.query('select from users where id = $1 for no key update', [userId]);
  const { rows } = await queryable.query(
    'select count(*)::int as count from organization_memberships where user_id = $1 and level = $2',
    [userId, level],
  );
  return rows[0].count;
}
