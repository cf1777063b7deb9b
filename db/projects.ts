import { containsPattern } from './like.ts';
import type { ProjectSummaryRow } from './organizations.ts';
import type { Queryable } from './pool.ts';
import { updateRow } from './update.ts';

export interface ProjectRow extends ProjectSummaryRow {
  app_urls: string[];
  anonymize_ips: boolean;
  test_account_filters: unknown[];
  flags_persistence_default: boolean | null;
  /** Settings that tools set and that change nothing, by name. */
  kept_settings: Record<string, unknown>;
  secret_api_token: string | null;
  secret_api_token_backup: string | null;
  created_at: string;
  updated_at: string;
}

export interface GroupTypeRow {
  group_type: string;
  group_type_index: number;
  name_singular: string | null;
  name_plural: string | null;
}

/** A project as a member of its organization sees it. */
export interface MemberProjectRow extends ProjectRow {
  group_types: GroupTypeRow[];
  membership_level: number;
  /** The organization's name and policy, so that one query decides on access. */
  organization_name: string;
  members_can_use_personal_api_keys: boolean;
}

const MEMBER_VIEW = `
  select p.*, m.level as membership_level, o.name as organization_name, o.members_can_use_personal_api_keys,
    coalesce((select json_agg(g order by g.group_type_index) from (
      select group_type, group_type_index, name_singular, name_plural from group_types
      where project_id = p.id) g), '[]') as group_types
  from projects p
  join organizations o on o.id = p.organization_id
  join organization_memberships m on m.organization_id = o.id and m.user_id = $1`;

export async function insertProject(
  queryable: Queryable,
  row: Pick<ProjectRow, 'uuid' | 'organization_id' | 'name' | 'api_token'> & { timezone?: string },
): Promise<ProjectRow> {
  const { rows } = await queryable.query(
    `insert into projects (uuid, organization_id, name, api_token, timezone)
     values ($1, $2, $3, $4, coalesce($5, 'UTC')) returning *`,
    [row.uuid, row.organization_id, row.name, row.api_token, row.timezone ?? null],
  );
  return rows[0];
}

export async function findMemberProject(
  queryable: Queryable,
  userId: number,
  id: number,
): Promise<MemberProjectRow | undefined> {
  const { rows } = await queryable.query(`${MEMBER_VIEW} where p.id = $2`, [userId, id]);
  return rows[0];
}

export async function listMemberProjects(
  queryable: Queryable,
  userId: number,
  organizationId: string,
  options: { limit: number; offset: number; only?: readonly number[]; search?: string | undefined },
): Promise<{ count: number; rows: MemberProjectRow[] }> {
  const only = options.only && options.only.length > 0 ? options.only : null;
  const where = 'p.organization_id = $2 and ($3::int[] is null or p.id = any($3)) and p.name ilike $4';
  const values = [userId, organizationId, only, containsPattern(options.search ?? '')];
  const counted = await queryable.query(
    `select count(*)::int as count from projects p
     join organization_memberships m on m.organization_id = p.organization_id and m.user_id = $1
     where ${where}`,
    values,
  );
  const { rows } = await queryable.query(`${MEMBER_VIEW} where ${where} order by p.id limit $5 offset $6`, [
    ...values,
    options.limit,
    options.offset,
  ]);
  return { count: counted.rows[0].count, rows };
}

/** Whether an organization has that many projects. */
export async function hasProjects(
  queryable: Queryable,
  organizationId: string,
  many: number,
): Promise<boolean> {
  const { rows } = await queryable.query(
    'select count(*)::int as count from (select from projects where organization_id = $1 limit $2) p',
    [organizationId, many],
  );
  return rows[0].count >= many;
}

export async function projectIdsOf(queryable: Queryable, organizationId: string): Promise<number[]> {
  const { rows } = await queryable.query('select id from projects where organization_id = $1 order by id', [
    organizationId,
  ]);
  return rows.map((row) => row.id);
}

const WRITABLE = [
  'name',
  'timezone',
  'is_demo',
  'completed_snippet_onboarding',
  'has_completed_onboarding_for',
  'access_control',
  'app_urls',
  'anonymize_ips',
  'test_account_filters',
  'flags_persistence_default',
  'api_token',
] as const;
const JSON_COLUMNS = new Set<string>(['has_completed_onboarding_for', 'app_urls', 'test_account_filters']);

export type ProjectPatch = Partial<Pick<ProjectRow, (typeof WRITABLE)[number]>>;

export async function updateProject(queryable: Queryable, id: number, patch: ProjectPatch): Promise<void> {
  const encoded = Object.fromEntries(
    Object.entries(patch).map(([column, value]) => [
      column,
      JSON_COLUMNS.has(column) && value !== undefined ? JSON.stringify(value) : value,
    ]),
  );
  await updateRow(queryable, 'projects', { id }, WRITABLE, encoded, { stamp: true });
}

/** Keeps settings that change nothing. Those that are not named keep their values. */
export async function keepSettings(
  queryable: Queryable,
  id: number,
  settings: Record<string, unknown>,
): Promise<void> {
  if (Object.keys(settings).length === 0) return;
  await queryable.query(
    'update projects set kept_settings = kept_settings || $2::jsonb, updated_at = clock_timestamp() where id = $1',
    [id, JSON.stringify(settings)],
  );
}

/** Sets `ingested_event` of the projects that have had an event. Returns how many had none before. */
export async function noteIngestedEvents(queryable: Queryable): Promise<number> {
  const { rowCount } = await queryable.query(
    `update projects p set ingested_event = true
     where not ingested_event and (exists (select from event_ids i where i.project_id = p.id)
       or exists (select from event_id_blocks b where b.project_id = p.id))`,
  );
  return rowCount ?? 0;
}

export async function deleteProject(queryable: Queryable, id: number): Promise<boolean> {
  const { rowCount } = await queryable.query('delete from projects where id = $1', [id]);
  return rowCount === 1;
}

/** Gives the project a new secret token. The token that it had stays valid as the backup. */
export async function rotateSecretToken(
  queryable: Queryable,
  id: number,
  { token, hash }: { token: string; hash: string },
): Promise<void> {
  await queryable.query(
    `update projects set secret_api_token = $2, secret_api_token_hash = $3, secret_api_token_backup = secret_api_token,
       secret_api_token_backup_hash = secret_api_token_hash, updated_at = now()
     where id = $1`,
    [id, token, hash],
  );
}

/** Ends the backup of the secret token. */
export async function deleteSecretTokenBackup(queryable: Queryable, id: number): Promise<void> {
  await queryable.query(
    `update projects set secret_api_token_backup = null, secret_api_token_backup_hash = null, updated_at = now()
     where id = $1`,
    [id],
  );
}

/** Counts how many of these projects the user is allowed to see. */
export async function countMemberProjects(
  queryable: Queryable,
  userId: number,
  projectIds: readonly number[],
): Promise<number> {
  const { rows } = await queryable.query(
    `select count(*)::int as count from projects p
     join organization_memberships m on m.organization_id = p.organization_id and m.user_id = $1
     where p.id = any($2)`,
    [userId, projectIds],
  );
  return rows[0].count;
}

export async function findProject(queryable: Queryable, id: number): Promise<ProjectRow | undefined> {
  const { rows } = await queryable.query('select * from projects where id = $1', [id]);
  return rows[0];
}

/** Keeps the project from being deleted until the transaction ends. Returns false if the project is gone. */
export async function lockProject(queryable: Queryable, id: number): Promise<boolean> {
  const { rowCount } = await queryable.query('select from projects where id = $1 for key share', [id]);
  return rowCount === 1;
}

/**
 * The channel on which Postgres names a key when its project is created or deleted, or when its PublicProjectRow
 * changes.
 */
export const PROJECT_KEYS_CHANNEL = 'sluice_project_keys';

/** What public requests need to know of a project. A new column must also be named in the trigger tell_of_project. */
export interface PublicProjectRow {
  id: number;
  anonymize_ips: boolean;
  /** The version of its enabled transformations. Null: it has none. */
  transformations: number | null;
}

/** Milliseconds to wait for Postgres, because a client waits for the answer. */
const KEY_PATIENCE = 5_000;

/** Finds the project that a public key belongs to. */
export async function findProjectByToken(
  queryable: Queryable,
  token: string,
): Promise<PublicProjectRow | undefined> {
  const query = {
    text: 'select id, anonymize_ips, transformations from projects where api_token = $1',
    values: [token],
    query_timeout: KEY_PATIENCE,
  };
  const { rows } = await queryable.query(query);
  return rows[0];
}
