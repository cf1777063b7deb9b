import type { Queryable, Transaction } from '../../db/pool.ts';
import { fits } from '../../db/reading.ts';
import { type ShownUser, shownUser } from '../../db/users.ts';
import { LOCK_KINDS } from './locks.ts';

export interface FlagRow {
  project_id: number;
  id: number;
  key: string;
  name: string;
  /** JSON, spelled as it was stored. */
  filters: string;
  active: boolean;
  archived: boolean;
  deleted: boolean;
  ensure_experience_continuity: boolean;
  is_remote_configuration: boolean;
  has_encrypted_payloads: boolean;
  /** The payloads, sealed, if the flag encrypts them. Its filters have the mark of an encrypted payload instead. */
  sealed_payloads: string | null;
  evaluation_runtime: 'all' | 'client' | 'server';
  bucketing_identifier: 'distinct_id' | 'device_id';
  evaluation_contexts: string[];
  tags: string[];
  version: number;
  /** The flags and the cohorts that the filters ask about. */
  asks: number[];
  asks_cohorts: number[];
  /** When somebody last asked for the flag by its key. Null: nobody has yet. */
  last_called_at: string | null;
  created_by: ShownUser | null;
  last_modified_by: ShownUser | null;
  created_at: string;
  updated_at: string;
}

const WRITABLE = [
  ...(['key', 'name', 'filters', 'active', 'archived', 'deleted', 'ensure_experience_continuity'] as const),
  ...(['is_remote_configuration', 'has_encrypted_payloads', 'sealed_payloads'] as const),
  ...(['evaluation_runtime', 'bucketing_identifier', 'evaluation_contexts', 'tags'] as const),
] as const;

/** What a user sets. */
export type FlagFields = Pick<FlagRow, (typeof WRITABLE)[number]>;

/** Identifies a flag. */
export interface FlagKey {
  projectId: number;
  flagId: number;
}

const COLUMNS = `f.project_id, f.id, f.key, f.name, f.filters::text as filters, f.active, f.archived, f.deleted,
  f.ensure_experience_continuity, f.is_remote_configuration, f.has_encrypted_payloads, f.sealed_payloads,
  f.evaluation_runtime, f.bucketing_identifier, f.evaluation_contexts, f.tags, f.version, f.created_at, f.updated_at,
  f.asks, f.asks_cohorts, f.last_called_at,
  ${shownUser('f.created_by')} as created_by, ${shownUser('f.last_modified_by')} as last_modified_by`;

export async function insertFlag(
  queryable: Queryable,
  row: FlagFields & { project_id: number; created_by: number | null },
): Promise<FlagRow> {
  const columns = ['project_id', 'created_by', ...WRITABLE] as const;
  const { rows } = await queryable.query(
    `with f as (
       insert into feature_flags (${columns.join(', ')}, last_modified_by)
       values (${columns.map((_, index) => `$${index + 1}`).join(', ')}, $2) returning *)
     select ${COLUMNS} from f`,
    columns.map((column) => row[column]),
  );
  return rows[0];
}

/** Changes a flag and returns it. */
export async function updateFlag(
  queryable: Queryable,
  { projectId, flagId }: FlagKey,
  patch: Partial<FlagFields>,
  userId: number | null,
): Promise<FlagRow | undefined> {
  const given = WRITABLE.filter((column) => patch[column] !== undefined);
  const assignments = given.map((column, index) => `${column} = $${index + 4}, `);
  const { rows } = await queryable.query(
    `with f as (
       update feature_flags set ${assignments.join('')}version = version + 1, last_modified_by = $3,
         updated_at = clock_timestamp()
       where project_id = $1 and id = $2 returning *)
     select ${COLUMNS} from f`,
    [projectId, flagId, userId, ...given.map((column) => patch[column])],
  );
  return rows[0];
}

/** Finds a flag, also a deleted one. */
export async function findFlag(
  queryable: Queryable,
  { projectId, flagId }: FlagKey,
): Promise<FlagRow | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from feature_flags f where f.project_id = $1 and f.id = $2`,
    [projectId, flagId],
  );
  return rows[0];
}

/** Finds a flag, also a deleted one, with what every change of its row changes. */
export async function findFlagVersion(
  queryable: Queryable,
  { projectId, flagId }: FlagKey,
): Promise<{ row: FlagRow; version: string } | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS}, f.xmin::text as row_version from feature_flags f where f.project_id = $1 and f.id = $2`,
    [projectId, flagId],
  );
  if (!rows[0]) return undefined;
  const { row_version: version, ...row } = rows[0];
  return { row, version };
}

/** Stores the sealed payloads of a new flag, whose id is part of what seals them. */
export async function putSealedPayloads(
  queryable: Queryable,
  { projectId, flagId }: FlagKey,
  sealed: string,
): Promise<void> {
  await queryable.query('update feature_flags set sealed_payloads = $3 where project_id = $1 and id = $2', [
    projectId,
    flagId,
    sealed,
  ]);
}

/** Locks the flags of a project until the transaction ends: what they say of each other is checked and saved as one. */
export async function lockFlags(client: Transaction, projectId: number): Promise<void> {
  await client.query('select pg_advisory_xact_lock($1, $2)', [LOCK_KINDS.flagsOfProject, projectId]);
}

export interface FlagListQuery {
  projectId: number;
  limit: number;
  offset: number;
  search?: string | undefined;
  active?: boolean | undefined;
  archived: boolean;
  createdBy?: number | undefined;
  tags?: string[] | undefined;
  runtime?: string | undefined;
  type?: 'boolean' | 'multivariant' | 'experiment' | 'remote_config' | undefined;
}

/** Lists the flags of a project that are not deleted, newest first. */
export async function listFlags(
  queryable: Queryable,
  query: FlagListQuery,
): Promise<{ count: number; rows: FlagRow[] }> {
  const values: unknown[] = [query.projectId, query.archived];
  const given = (value: unknown) => `$${values.push(value)}`;
  const conditions = ['f.project_id = $1', 'not f.deleted', 'f.archived = $2'];
  if (query.search) {
    const pattern = given(`%${query.search.replace(/[\\%_]/g, '\\$&')}%`);
    conditions.push(`(f.key ilike ${pattern} or f.name ilike ${pattern})`);
  }
  if (query.active !== undefined) conditions.push(`f.active = ${given(query.active)}`);
  if (query.createdBy !== undefined) conditions.push(`f.created_by = ${given(query.createdBy)}`);
  if (query.tags) conditions.push(`f.tags && ${given(query.tags)}::text[]`);
  if (query.runtime) conditions.push(`f.evaluation_runtime = ${given(query.runtime)}`);
  const variants = "jsonb_path_exists(f.filters::jsonb, 'lax $.multivariate.variants[*]')";
  if (query.type === 'boolean') conditions.push(`not ${variants} and not f.is_remote_configuration`);
  if (query.type === 'multivariant') conditions.push(variants);
  if (query.type === 'remote_config') conditions.push('f.is_remote_configuration');
  if (query.type === 'experiment') conditions.push('false');
  const where = conditions.join(' and ');
  const counted = await queryable.query(
    `select count(*)::int as count from feature_flags f where ${where}`,
    values,
  );
  const order = 'order by created_at desc, id desc';
  const { rows } = await queryable.query(
    `with shown as (select f.* from feature_flags f where ${where} ${order}
       limit ${given(query.limit)} offset ${given(query.offset)}),
     fitting as (
       select id, row_number() over (${order}) as number,
         sum(octet_length(filters::text)) over (${order} rows unbounded preceding) as bytes from shown)
     select ${COLUMNS} from fitting n join shown f using (id) where ${fits('n')}
     order by f.created_at desc, f.id desc`,
    values,
  );
  return { count: counted.rows[0].count, rows };
}

/** What flags of a project say of each other. */
export interface FlagLink {
  id: number;
  key: string;
  active: boolean;
  asks: readonly number[];
}

/** Lists the flags of a project that are not deleted, with the ids of those that each asks about. */
export async function listLinks(queryable: Queryable, projectId: number): Promise<FlagLink[]> {
  const { rows } = await queryable.query(
    'select id, key, active, asks from feature_flags where project_id = $1 and not deleted order by id',
    [projectId],
  );
  return rows;
}

/** Whether another flag of the project has a key. Deleted ones do not count. */
export async function isKeyTaken(
  queryable: Queryable,
  projectId: number,
  key: string,
  ownId: number | null,
): Promise<boolean> {
  const { rows } = await queryable.query(
    `select from feature_flags where project_id = $1 and key = $2 and not deleted and id is distinct from $3`,
    [projectId, key, ownId],
  );
  return rows.length > 0;
}

/** How many flags a project has that are not deleted, and the bytes of their filters. One flag is left out. */
export async function sizeOfFlags(
  queryable: Queryable,
  projectId: number,
  without: number | null,
): Promise<{ flags: number; bytes: number }> {
  const { rows } = await queryable.query(
    `select count(*)::int as flags, coalesce(sum(filter_bytes), 0)::float8 as bytes from feature_flags
     where project_id = $1 and not deleted and id is distinct from $2`,
    [projectId, without],
  );
  return rows[0];
}

export interface OverrideRow {
  distinct_id: string;
  value: boolean | string;
  created_at: string;
}

/** Lists the values that were set by hand, by distinct id. */
export async function listOverrides(
  queryable: Queryable,
  { projectId, flagId }: FlagKey,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ count: number; rows: OverrideRow[] }> {
  const counted = await queryable.query(
    'select count(*)::int as count from feature_flag_overrides where project_id = $1 and flag_id = $2',
    [projectId, flagId],
  );
  const { rows } = await queryable.query(
    `select distinct_id, value, created_at from feature_flag_overrides where project_id = $1 and flag_id = $2
     order by distinct_id limit $3 offset $4`,
    [projectId, flagId, limit, offset],
  );
  return { count: counted.rows[0].count, rows };
}

/** Sets a value by hand. Answers how many the flag has then. */
export async function putOverride(
  queryable: Queryable,
  { projectId, flagId }: FlagKey,
  { distinctId, value, userId }: { distinctId: string; value: boolean | string; userId: number | null },
): Promise<number> {
  await queryable.query(
    `insert into feature_flag_overrides (project_id, flag_id, distinct_id, value, created_by)
     values ($1, $2, $3, $4, $5)
     on conflict (project_id, flag_id, distinct_id) do update
       set value = excluded.value, created_by = excluded.created_by, created_at = clock_timestamp()`,
    [projectId, flagId, distinctId, JSON.stringify(value), userId],
  );
  const { rows } = await queryable.query(
    'select count(*)::int as count from feature_flag_overrides where project_id = $1 and flag_id = $2',
    [projectId, flagId],
  );
  return rows[0].count;
}

/** Takes a value that was set by hand away. Answers whether there was one. */
export async function deleteOverride(
  queryable: Queryable,
  { projectId, flagId }: FlagKey,
  distinctId: string,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    'delete from feature_flag_overrides where project_id = $1 and flag_id = $2 and distinct_id = $3',
    [projectId, flagId, distinctId],
  );
  return (rowCount ?? 0) > 0;
}
