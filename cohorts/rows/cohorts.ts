import { containsPattern } from '../../db/like.ts';
import type { Queryable, Transaction } from '../../db/pool.ts';
import { fits } from '../../db/reading.ts';
import { type ShownUser, shownUser } from '../../db/users.ts';
import { LOCK_KINDS } from './locks.ts';

export interface CohortRow {
  project_id: number;
  id: number;
  name: string;
  description: string;
  is_static: boolean;
  /** JSON, spelled as it was stored. */
  filters: string;
  deleted: boolean;
  version: number;
  created_by: ShownUser | null;
  created_at: string;
  updated_at: string;
  /** How many persons it had when they were last counted. Null: never. A static cohort is counted when it is shown. */
  count: number | null;
  counted_at: string | null;
  /** Why they could not be counted. */
  count_error: string | null;
  /** It was changed since it was counted. */
  is_outdated: boolean;
}

const WRITABLE = ['name', 'description', 'is_static', 'filters', 'deleted'] as const;

/** What a user sets. */
export type CohortFields = Pick<CohortRow, (typeof WRITABLE)[number]>;

/** Identifies a cohort. */
export interface CohortKey {
  projectId: number;
  cohortId: number;
}

const COLUMNS = `c.project_id, c.id, c.name, c.description, c.is_static, c.filters::text as filters, c.deleted,
  c.version, c.created_at, c.updated_at, c.count, c.counted_at, c.count_error,
  (not c.is_static and (c.counted_at is null or c.counted_at < c.updated_at)) as is_outdated, ${shownUser('c.created_by')} as created_by`;

export async function insertCohort(
  queryable: Queryable,
  row: CohortFields & { project_id: number; created_by: number | null },
): Promise<CohortRow> {
  const columns = ['project_id', 'created_by', ...WRITABLE] as const;
  const { rows } = await queryable.query(
    `with c as (
       insert into cohorts (${columns.join(', ')})
       values (${columns.map((_, index) => `$${index + 1}`).join(', ')}) returning *)
     select ${COLUMNS} from c`,
    columns.map((column) => row[column]),
  );
  return rows[0];
}

export async function updateCohort(
  queryable: Queryable,
  { projectId, cohortId }: CohortKey,
  patch: CohortFields,
): Promise<CohortRow | undefined> {
  const assignments = WRITABLE.map((column, index) => `${column} = $${index + 3}, `);
  const { rows } = await queryable.query(
    `with c as (
       update cohorts set ${assignments.join('')}version = version + 1, updated_at = clock_timestamp()
       where project_id = $1 and id = $2 returning *)
     select ${COLUMNS} from c`,
    [projectId, cohortId, ...WRITABLE.map((column) => patch[column])],
  );
  return rows[0];
}

/** Finds a cohort, also a deleted one. */
export async function findCohort(
  queryable: Queryable,
  { projectId, cohortId }: CohortKey,
  { lock = false } = {},
): Promise<CohortRow | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from cohorts c where c.project_id = $1 and c.id = $2 ${lock ? 'for update' : ''}`,
    [projectId, cohortId],
  );
  return rows[0];
}

/** Finds the cohort of a name, of several the oldest one. */
export async function findCohortByName(
  queryable: Queryable,
  projectId: number,
  name: string,
): Promise<number | undefined> {
  const { rows } = await queryable.query(
    'select id from cohorts where project_id = $1 and name = $2 and not deleted order by id limit 1',
    [projectId, name],
  );
  return rows[0]?.id;
}

/** Finds the names of cohorts that are not deleted, by their ids. */
export async function namesOfCohorts(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
): Promise<Map<number, string>> {
  const { rows } = await queryable.query(
    'select id, name from cohorts where project_id = $1 and id = any($2::int[]) and not deleted',
    [projectId, ids],
  );
  return new Map(rows.map((row) => [row.id, row.name]));
}

/** Locks the cohorts of a project until the transaction ends: what they say of each other is checked and saved as one. */
export async function lockCohorts(client: Transaction, projectId: number): Promise<void> {
  await client.query('select pg_advisory_xact_lock($1, $2)', [LOCK_KINDS.cohortsOfProject, projectId]);
}

/** By what cohorts are chosen from a list. */
export interface CohortChoice {
  search?: string | undefined;
  isStatic?: boolean | undefined;
  createdBy?: number | undefined;
}

/** Lists the cohorts of a project that are not deleted, newest first. */
export async function listCohorts(
  queryable: Queryable,
  projectId: number,
  { limit, offset, search, isStatic, createdBy }: CohortChoice & { limit: number; offset: number },
): Promise<{ count: number; rows: CohortRow[] }> {
  const pattern = search ? containsPattern(search) : null;
  const where = `project_id = $1 and not deleted and ($2::text is null or name ilike $2)
    and ($3::boolean is null or is_static = $3) and ($4::int is null or created_by = $4)`;
  const choice = [projectId, pattern, isStatic ?? null, createdBy ?? null];
  const counted = await queryable.query(`select count(*)::int as count from cohorts where ${where}`, choice);
  const order = 'order by created_at desc, id desc';
  const { rows } = await queryable.query(
    `with shown as (
       select id, created_at, filter_bytes from cohorts where ${where} ${order} limit $5 offset $6),
     fitting as (
       select id, row_number() over (${order}) as number,
         sum(filter_bytes) over (${order} rows unbounded preceding) as bytes from shown)
     select ${COLUMNS} from fitting n join cohorts c on c.project_id = $1 and c.id = n.id where ${fits('n')}
     order by n.number`,
    [...choice, limit, offset],
  );
  return { count: counted.rows[0].count, rows };
}

/** Whether a project has at least so many cohorts. */
export async function hasCohorts(queryable: Queryable, projectId: number, atLeast: number): Promise<boolean> {
  const { rows } = await queryable.query(
    'select from cohorts where project_id = $1 and not deleted offset $2 limit 1',
    [projectId, atLeast - 1],
  );
  return rows.length > 0;
}

/** The bytes of the filters of a project's cohorts that are not deleted. One cohort is left out. */
export async function bytesOfCohorts(
  queryable: Queryable,
  projectId: number,
  without: number | null,
): Promise<number> {
  const { rows } = await queryable.query(
    `select coalesce(sum(filter_bytes), 0)::float8 as bytes from cohorts
     where project_id = $1 and not deleted and id is distinct from $2`,
    [projectId, without],
  );
  return rows[0].bytes;
}

/** Lists the cohorts of a project that name a cohort. */
export async function cohortsAsking(
  queryable: Queryable,
  projectId: number,
  cohortId: number,
): Promise<{ id: number; name: string }[]> {
  const { rows } = await queryable.query(
    `select id, name from cohorts
     where project_id = $1 and not deleted and not is_static and id <> $2 and asks @> array[$2::int] order by id`,
    [projectId, cohortId],
  );
  return rows;
}

/** Finds the first of these ids that no cohort of a project has. */
export async function missingCohort(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
): Promise<number | undefined> {
  const { rows } = await queryable.query(
    `select id from unnest($2::int[]) with ordinality as asked (id, place)
     where not exists (select from cohorts c where c.project_id = $1 and c.id = asked.id and not c.deleted)
     order by place limit 1`,
    [projectId, ids],
  );
  return rows[0]?.id;
}

/** Whether some cohorts name a cohort, directly or through others. */
export async function leadsToCohort(
  queryable: Queryable,
  projectId: number,
  from: readonly number[],
  cohortId: number,
): Promise<boolean> {
  const { rows } = await queryable.query(
    `with recursive reached as (
       select unnest($2::int[]) as id
       union
       select unnest(c.asks) from reached r
       join cohorts c on c.project_id = $1 and c.id = r.id and not c.deleted and not c.is_static)
     select from reached where id = $3 limit 1`,
    [projectId, from, cohortId],
  );
  return rows.length > 0;
}
