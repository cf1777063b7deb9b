import { containsPattern, literalPattern } from '../../db/like.ts';
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
  /** Whether everybody gets the same value. */
  for_everybody: boolean;
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

/** The keys of flags that belong to surveys begin so. */
export const SURVEY_FLAG_PREFIX = 'survey-targeting-';

/** Identifies a flag. */
export interface FlagKey {
  projectId: number;
  flagId: number;
}

/** What is read of a flag `f`. */
export const FLAG_COLUMNS = `f.project_id, f.id, f.key, f.name, f.filters::text as filters, f.active, f.archived, f.deleted,
  f.ensure_experience_continuity, f.is_remote_configuration, f.has_encrypted_payloads, f.sealed_payloads,
  f.evaluation_runtime, f.bucketing_identifier, f.evaluation_contexts, f.tags, f.version, f.created_at, f.updated_at,
  f.asks, f.asks_cohorts, f.for_everybody, f.last_called_at,
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
     select ${FLAG_COLUMNS} from f`,
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
     select ${FLAG_COLUMNS} from f`,
    [projectId, flagId, userId, ...given.map((column) => patch[column])],
  );
  return rows[0];
}

/** Finds a flag, also a deleted one, with what every change of its row changes. */
export async function findFlagVersion(
  queryable: Queryable,
  { projectId, flagId }: FlagKey,
): Promise<{ row: FlagRow; version: string } | undefined> {
  const { rows } = await queryable.query(
    `select ${FLAG_COLUMNS}, f.xmin::text as row_version from feature_flags f where f.project_id = $1 and f.id = $2`,
    [projectId, flagId],
  );
  if (!rows[0]) return undefined;
  const { row_version: version, ...row } = rows[0];
  return { row, version };
}

/** Finds a flag, also a deleted one. */
export const findFlag = async (queryable: Queryable, key: FlagKey): Promise<FlagRow | undefined> =>
  (await findFlagVersion(queryable, key))?.row;

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

/** The columns by which flags can be listed. */
export const FLAG_ORDERS = [
  'created_at',
  'updated_at',
  'key',
  'name',
  'active',
  'version',
  'last_called_at',
] as const;
type FlagOrder = (typeof FLAG_ORDERS)[number];

/** By what flags are chosen from those of a project, and in which order. */
export interface FlagChoice {
  key?: string | undefined;
  search?: string | undefined;
  active?: boolean | undefined;
  /**
   * Only flags that nobody has called for so many days, or of which that is not known and that decide nothing.
   * `rules/status.ts` says of one flag what this says of many.
   */
  staleDays?: number | undefined;
  archived: boolean;
  createdBy?: number[] | undefined;
  tags?: string[] | undefined;
  excludedTags?: string[] | undefined;
  excludedKeys?: string[] | undefined;
  hasContexts?: boolean | undefined;
  /** Only flags with at least two variants. */
  hasTwoVariants?: boolean | undefined;
  runtime?: string | undefined;
  type?: 'boolean' | 'multivariant' | 'experiment' | 'remote_config' | undefined;
  /** With `-` before it: the largest first. */
  order?: FlagOrder | `-${FlagOrder}` | undefined;
}

/** Writes the condition for the flags of a choice that are not deleted, and adds its values to a list. */
function chosen(projectId: number, choice: FlagChoice, values: unknown[]): string {
  const given = (value: unknown) => `$${values.push(value)}`;
  const conditions = [
    `f.project_id = ${given(projectId)}`,
    'not f.deleted',
    `f.archived = ${given(choice.archived)}`,
    // Surveys manage their flags themselves.
    `not starts_with(f.key, ${given(SURVEY_FLAG_PREFIX)})`,
  ];
  if (choice.key !== undefined) conditions.push(`f.key = ${given(choice.key)}`);
  if (choice.search) {
    const name = given(containsPattern(choice.search));
    // Where a search has a space, a key has - or _.
    const key = given(`%${choice.search.split(/\s+/).map(literalPattern).join('_')}%`);
    conditions.push(`(f.key ilike ${name} or f.key ilike ${key} or f.name ilike ${name})`);
  }
  if (choice.active !== undefined) conditions.push(`f.active = ${given(choice.active)}`);
  if (choice.staleDays !== undefined) {
    const since = `clock_timestamp() - make_interval(days => ${given(choice.staleDays)})`;
    conditions.push(`f.active and case when f.last_called_at is null
      then f.for_everybody and f.created_at < ${since} else f.last_called_at < ${since} end`);
  }
  if (choice.createdBy) conditions.push(`f.created_by = any(${given(choice.createdBy)}::int[])`);
  if (choice.tags) conditions.push(`f.tags && ${given(choice.tags)}::text[]`);
  if (choice.excludedTags) conditions.push(`not f.tags && ${given(choice.excludedTags)}::text[]`);
  if (choice.excludedKeys) conditions.push(`f.key <> all(${given(choice.excludedKeys)}::text[])`);
  if (choice.hasContexts !== undefined) {
    conditions.push(`(f.evaluation_contexts <> '{}') = ${given(choice.hasContexts)}`);
  }
  if (choice.runtime) conditions.push(`f.evaluation_runtime = ${given(choice.runtime)}`);
  const variants = "jsonb_path_exists(f.filters::jsonb, 'lax $.multivariate.variants[*]')";
  if (choice.type === 'boolean') conditions.push(`not ${variants} and not f.is_remote_configuration`);
  if (choice.type === 'multivariant') conditions.push(variants);
  if (choice.type === 'remote_config') conditions.push('f.is_remote_configuration');
  if (choice.type === 'experiment') conditions.push('false');
  if (choice.hasTwoVariants) {
    conditions.push("jsonb_path_exists(f.filters::jsonb, 'lax $.multivariate.variants[1]')");
  }
  return conditions.join(' and ');
}

/** Writes the order of a list. */
function orderBy(order: FlagChoice['order'] = '-created_at'): string {
  const falls = order.startsWith('-');
  const column = FLAG_ORDERS.find((one) => one === order.replace('-', '')) ?? 'created_at';
  const direction = falls ? 'desc nulls last' : 'asc nulls first';
  return `order by f.${column} ${direction}, f.id ${falls ? 'desc' : 'asc'}`;
}

/** Lists flags of a project, by default newest first. */
export async function listFlags(
  queryable: Queryable,
  { projectId, limit, offset, ...choice }: FlagChoice & { projectId: number; limit: number; offset: number },
): Promise<{ count: number; rows: FlagRow[] }> {
  const values: unknown[] = [];
  const where = chosen(projectId, choice, values);
  const counted = await queryable.query(
    `select count(*)::int as count from feature_flags f where ${where}`,
    values,
  );
  const order = orderBy(choice.order);
  const { rows } = await queryable.query(
    `with fitting as (
       select f.id, row_number() over (${order}) as number,
         sum(f.filter_bytes) over (${order} rows unbounded preceding) as bytes
       from (select f.* from feature_flags f where ${where} ${order}
         limit $${values.push(limit)} offset $${values.push(offset)}) f)
     select ${FLAG_COLUMNS} from fitting n join feature_flags f on f.project_id = $1 and f.id = n.id
     where ${fits('n')} order by n.number`,
    values,
  );
  return { count: counted.rows[0].count, rows };
}

/** Names all flags of a choice by their ids. */
export async function listFlagIds(
  queryable: Queryable,
  projectId: number,
  choice: FlagChoice,
): Promise<number[]> {
  const values: unknown[] = [];
  const where = chosen(projectId, choice, values);
  const { rows } = await queryable.query(
    `select f.id from feature_flags f where ${where} order by f.id`,
    values,
  );
  return rows.map((row) => row.id);
}

/** Finds the keys of flags that are not deleted, by their ids. */
export async function keysOfFlags(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
): Promise<Map<number, string>> {
  const { rows } = await queryable.query(
    'select id, key from feature_flags where project_id = $1 and id = any($2::int[]) and not deleted',
    [projectId, ids],
  );
  return new Map(rows.map((row) => [row.id, row.key]));
}

/** Finds the ids of flags that are not deleted, by their keys. */
export async function idsOfFlags(
  queryable: Queryable,
  projectId: number,
  keys: readonly string[],
): Promise<Map<string, number>> {
  const { rows } = await queryable.query(
    'select id, key from feature_flags where project_id = $1 and key = any($2::text[]) and not deleted',
    [projectId, keys],
  );
  return new Map(rows.map((row) => [row.key, row.id]));
}

/** Finds a flag that is not deleted by its key. */
export async function findFlagByKey(
  queryable: Queryable,
  projectId: number,
  key: string,
): Promise<FlagRow | undefined> {
  const { rows } = await queryable.query(
    `select ${FLAG_COLUMNS} from feature_flags f where f.project_id = $1 and f.key = $2 and not f.deleted`,
    [projectId, key],
  );
  return rows[0];
}

/** Finds the flags of a key that are not deleted in some projects: their ids and what their filters take. */
export async function siblingsOf(
  queryable: Queryable,
  projectIds: readonly number[],
  key: string,
): Promise<{ projectId: number; flagId: number; bytes: number }[]> {
  const { rows } = await queryable.query(
    `select project_id as "projectId", id as "flagId", filter_bytes as bytes from feature_flags
     where project_id = any($1::int[]) and key = $2 and not deleted order by array_position($1::int[], project_id)`,
    [projectIds, key],
  );
  return rows;
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

/**
 * Finds the first of `key`, `base-2`, `base-3` … that no other flag of the project has, in one statement, however many are taken.
 * Deleted flags do not count.
 */
export async function freeFlagKey(
  queryable: Queryable,
  projectId: number,
  { key, base, ownId }: { key: string; base: string; ownId: number | null },
): Promise<string> {
  // In the order of the column, what begins with `base-` ends before `base.`.
  const { rows } = await queryable.query(
    `with taken as materialized (
       select key from feature_flags where project_id = $1 and not deleted and id is distinct from $4
         and (key = $2 or (key >= $3 || '-' and key < $3 || '.')))
     select key from (
       select $2::text as key, 1 as number
       union all
       select $3 || '-' || n, n from generate_series(2, (select count(*)::int from taken) + 2) as n) as candidates
     where key collate "C" not in (select key from taken) order by number limit 1`,
    [projectId, key, base, ownId],
  );
  return rows[0].key;
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

/** Sets a value by hand. Answers how many the flag has then, and all flags of the project. */
export async function putOverride(
  queryable: Queryable,
  { projectId, flagId }: FlagKey,
  { distinctId, value, userId }: { distinctId: string; value: boolean | string; userId: number | null },
): Promise<{ ofFlag: number; ofProject: number }> {
  await queryable.query(
    `insert into feature_flag_overrides (project_id, flag_id, distinct_id, value, created_by)
     values ($1, $2, $3, $4, $5)
     on conflict (project_id, flag_id, distinct_id) do update
       set value = excluded.value, created_by = excluded.created_by, created_at = clock_timestamp()`,
    [projectId, flagId, distinctId, JSON.stringify(value), userId],
  );
  const { rows } = await queryable.query(
    `select count(*) filter (where flag_id = $2)::int as "ofFlag", count(*)::int as "ofProject"
     from feature_flag_overrides where project_id = $1`,
    [projectId, flagId],
  );
  return rows[0];
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
