import { literalPattern } from '../../db/like.ts';
import type { Queryable, Transaction } from '../../db/pool.ts';
import { fits } from '../../db/reading.ts';
import type { UserRow } from '../../db/users.ts';
import type { CompiledContent, InputSchema, StoredInputs, StoredMapping } from '../rules/definition.ts';
import type { OnError } from '../rules/on-error.ts';
import type { DeliveryPolicy } from '../rules/policy.ts';
import type { SourceContent } from '../rules/source.ts';
import type { Watched } from '../rules/status.ts';
import type { FunctionTypeName } from '../rules/types.ts';
import { WATCHED } from './states.ts';

export interface FunctionRow {
  project_id: number;
  id: string;
  type: FunctionTypeName;
  name: string | null;
  description: string;
  icon_url: string | null;
  template_id: string | null;
  enabled: boolean;
  /** When it was last switched on. Null: it never was. */
  enabled_at: string | null;
  execution_order: number | null;
  on_error: OnError | null;
  /** How its invocations are delivered. Null: as those of all others. */
  delivery: DeliveryPolicy | null;
  /** Whether its invocations wait without being attempted. */
  paused: boolean;
  hog: string;
  inputs_schema: InputSchema[];
  /** Without the secret ones. */
  inputs: StoredInputs;
  filters: Record<string, unknown>;
  masking: CompiledContent['masking'];
  /** Without their secret inputs. */
  mappings: StoredMapping[] | null;
  /** The secret inputs, sealed by `reads/secrets.ts`. Null: there are none. */
  secrets: string | null;
  /** Which inputs are secret and have a value: those of the function, and those of each mapping. */
  secret_keys: { inputs: string[]; mappings: string[][] };
  bytecode: unknown[] | null;
  transpiled: string | null;
  warnings: string[];
  version: number;
  /** What the filters take from elsewhere, as of the last compilation. Null: they take nothing. */
  compiled_from: Origins | null;
  compile_error: string | null;
  /** Signs the tokens that confirm that somebody has seen what a draft changes. */
  publish_key: string;
  created_by: number | null;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
}

/** What filters take from elsewhere. */
export interface Origins {
  /** The project's conditions that leave out test accounts. Null: the filters do not name them. */
  testAccounts: unknown;
  /** The actions that the filters name and that exist. */
  actions: [id: number, version: number][];
  /** The cohorts that the filters name, directly or through others. Absent: none. */
  cohorts?: { id: number; version: number }[];
}

/** A function with who made it, and with its draft. */
export interface ShownFunctionRow extends FunctionRow {
  creator: UserRow | null;
  draft: { content: SourceContent; secret_keys: FunctionRow['secret_keys'] } | null;
  draft_updated_at: string | null;
  watched: Watched;
}

const WRITABLE = [
  ...([
    'type',
    'name',
    'description',
    'icon_url',
    'template_id',
    'enabled',
    'execution_order',
    'on_error',
    'delivery',
    'paused',
    'hog',
  ] as const),
  ...([
    'inputs_schema',
    'inputs',
    'filters',
    'masking',
    'mappings',
    'secrets',
    'secret_keys',
    'bytecode',
  ] as const),
  ...([
    'transpiled',
    'warnings',
    'version',
    'compiled_from',
    'compile_error',
    'created_by',
    'deleted_at',
  ] as const),
] as const;
const JSON_COLUMNS: ReadonlySet<string> = new Set([
  ...[
    'inputs_schema',
    'inputs',
    'filters',
    'masking',
    'mappings',
    'secret_keys',
    'bytecode',
    'warnings',
    'compiled_from',
    'delivery',
  ],
]);

export type FunctionFields = Pick<FunctionRow, (typeof WRITABLE)[number]>;

/** Identifies a function. */
export interface FunctionKey {
  projectId: number;
  functionId: string;
}

export const keyOf = (row: Pick<FunctionRow, 'project_id' | 'id'>): FunctionKey => ({
  projectId: row.project_id,
  functionId: row.id,
});

const stored = (column: string, value: unknown): unknown =>
  JSON_COLUMNS.has(column) && value !== null ? JSON.stringify(value) : value;

/** Completes rows of functions, `f`. */
const OF_FUNCTION = `
  left join users u on u.id = f.created_by
  left join function_drafts d on d.project_id = f.project_id and d.function_id = f.id`;
const SHOWN_BESIDE = `${WATCHED} as watched, to_json(u) as creator, d.updated_at as draft_updated_at,
  case when d.project_id is not null then json_build_object('content', d.content, 'secret_keys', d.secret_keys) end as draft`;
const SHOWN = `select f.*, ${SHOWN_BESIDE} from functions f ${OF_FUNCTION}`;

export async function insertFunction(
  queryable: Queryable,
  row: Partial<FunctionFields> & Pick<FunctionRow, 'project_id' | 'id'>,
): Promise<void> {
  const given = WRITABLE.filter((column) => row[column] !== undefined);
  const columns = ['project_id', 'id', ...given];
  const values = [row.project_id, row.id, ...given.map((column) => stored(column, row[column]))];
  await queryable.query(
    `insert into functions (${columns.join(', ')}) values (${columns.map((_, index) => `$${index + 1}`).join(', ')})`,
    values,
  );
}

/** Changes a function. False: there is no such function. */
export async function updateFunction(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  patch: Partial<FunctionFields>,
): Promise<boolean> {
  const given = WRITABLE.filter((column) => patch[column] !== undefined);
  const assignments = given.map((column, index) => `${column} = $${index + 3}, `).join('');
  const { rowCount } = await queryable.query(
    `update functions set ${assignments}updated_at = clock_timestamp() where project_id = $1 and id = $2`,
    [projectId, functionId, ...given.map((column) => stored(column, patch[column]))],
  );
  return rowCount === 1;
}

/** Finds a function, also one that is deleted if `deleted` is set. */
export async function findFunction(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  { deleted = false }: { deleted?: boolean } = {},
): Promise<ShownFunctionRow | undefined> {
  const { rows } = await queryable.query(
    `${SHOWN} where f.project_id = $1 and f.id = $2 and (f.deleted_at is null or $3)`,
    [projectId, functionId, deleted],
  );
  return rows[0];
}

/** A function and the version of its row. Every change of the row makes another version. */
export interface VersionedFunction {
  row: FunctionRow;
  rowVersion: string;
}

/** Finds a function, deleted or not. With `lock`, nobody else can change it until the transaction ends. */
export async function findVersion(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  { lock = false }: { lock?: boolean } = {},
): Promise<VersionedFunction | undefined> {
  const { rows } = await queryable.query(
    `select *, xmin::text as row_version from functions where project_id = $1 and id = $2 ${lock ? 'for update' : ''}`,
    [projectId, functionId],
  );
  if (!rows[0]) return undefined;
  const { row_version: rowVersion, ...row } = rows[0];
  return { row, rowVersion };
}

export interface FunctionQuery {
  projectId: number;
  types?: readonly string[] | undefined;
  /** Whether they are enabled. Both values: all. */
  enabled?: readonly boolean[] | undefined;
  id?: string | undefined;
  createdBy?: number | undefined;
  createdAt?: string | undefined;
  updatedAt?: string | undefined;
  /** A part of the name or of the description. */
  search?: string | undefined;
  /** Only these, in this order. */
  ids?: readonly string[] | undefined;
  /** The filters of a function contain one of these documents. */
  filters?: readonly unknown[] | undefined;
  limit: number;
  offset: number;
}

/** A query of functions in SQL. */
interface Wanted {
  where: string;
  order: string;
  values: unknown[];
  given(value: unknown): string;
}

function wantedBy(query: Omit<FunctionQuery, 'limit' | 'offset'>): Wanted {
  const values: unknown[] = [query.projectId];
  const given = (value: unknown) => `$${values.push(value)}`;
  const conditions = ['f.project_id = $1', 'f.deleted_at is null'];
  if (query.types) conditions.push(`f.type = any(${given(query.types)}::text[])`);
  if (query.enabled) conditions.push(`f.enabled = any(${given(query.enabled)}::boolean[])`);
  if (query.id !== undefined) conditions.push(`f.id = ${given(query.id)}::uuid`);
  if (query.createdBy !== undefined) conditions.push(`f.created_by = ${given(query.createdBy)}::bigint`);
  if (query.createdAt !== undefined) conditions.push(`f.created_at = ${given(query.createdAt)}::timestamptz`);
  if (query.updatedAt !== undefined) conditions.push(`f.updated_at = ${given(query.updatedAt)}::timestamptz`);
  let order = 'f.execution_order nulls last, f.updated_at desc, f.id';
  if (query.search) {
    const text = `${given(literalPattern(query.search))}::text`;
    const has = (column: string) => `${column} ilike '%' || ${text} || '%'`;
    conditions.push(`(${has('f.name')} or ${has('f.description')})`);
    order = `case when f.name ilike ${text} then 0 when f.name ilike ${text} || '%' then 1
      when ${has('f.name')} then 2 else 3 end, ${order}`;
  }
  if (query.ids) {
    const ids = given(query.ids);
    conditions.push(`f.id = any(${ids}::uuid[])`);
    order = `array_position(${ids}::uuid[], f.id)`;
  }
  if (query.filters) {
    const documents = given(query.filters.map((one) => JSON.stringify(one)));
    conditions.push(`f.filters::jsonb @> any(${documents}::jsonb[])`);
  }
  return { where: `where ${conditions.join(' and ')}`, order, values, given };
}

/** Lists the beginnings of the names of functions, of as many as can be compared without delay. */
export async function listNames(
  queryable: Queryable,
  query: Omit<FunctionQuery, 'limit' | 'offset'>,
): Promise<{ id: string; name: string }[]> {
  const { where, order, values } = wantedBy(query);
  const { rows } = await queryable.query(
    `select f.id, left(f.name, 100) as name from functions f ${where} and f.name is not null order by ${order} limit 1000`,
    values,
  );
  return rows;
}

/**
 * Lists functions in the order of their execution. With `search`, those whose name is the text come first, then those whose
 * name begins with it or has it.
 */
export async function listFunctions(
  queryable: Queryable,
  query: FunctionQuery,
): Promise<{ count: number; rows: ShownFunctionRow[] }> {
  const { where, order, values, given } = wantedBy(query);
  const counted = await queryable.query(`select count(*)::int as count from functions f ${where}`, values);
  // A page of large functions ends early, so that nobody asks for gigabytes by one request.
  const { rows } = await queryable.query(
    `with wanted as (
       select f.*, row_number() over (order by ${order}) as number from functions f ${where}
       order by ${order} limit ${given(query.limit)} offset ${given(query.offset)}),
     fitting as (
       select f.id, number,
         sum(octet_length(concat(hog, inputs_schema, inputs, filters, mappings, bytecode, transpiled, d.content)))
         over (order by number rows unbounded preceding) as bytes from wanted f ${OF_FUNCTION})
     select f.*, ${SHOWN_BESIDE} from fitting join wanted f using (id, number) ${OF_FUNCTION}
     where ${fits('fitting')} order by f.number`,
    values,
  );
  return { count: counted.rows[0].count, rows };
}

/** Answers whether a project has at least so many functions that are not deleted. */
export async function hasFunctions(
  queryable: Queryable,
  projectId: number,
  atLeast: number,
): Promise<boolean> {
  const { rows } = await queryable.query(
    'select from functions where project_id = $1 and deleted_at is null offset $2 limit 1',
    [projectId, atLeast - 1],
  );
  return rows.length > 0;
}

/** Counts the mappings of the enabled functions of a project, without those of one of them. */
export async function countMappings(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
): Promise<number> {
  const { rows } = await queryable.query(
    `select coalesce(sum(json_array_length(mappings)), 0)::int as count from functions
     where project_id = $1 and id <> $2 and enabled and deleted_at is null and mappings is not null`,
    [projectId, functionId],
  );
  return rows[0].count;
}

/** Counts the enabled functions of a type, without one of them. */
export async function countEnabled(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  type: FunctionTypeName,
): Promise<number> {
  const { rows } = await queryable.query(
    `select count(*)::int as count from functions
     where project_id = $1 and type = $3 and enabled and deleted_at is null and id <> $2`,
    [projectId, functionId, type],
  );
  return rows[0].count;
}

/** Returns the last place in the order of a type, without one of its functions. 0: none has a place. */
export async function lastOrder(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  type: FunctionTypeName,
): Promise<number> {
  const { rows } = await queryable.query(
    `select coalesce(max(execution_order), 0) as last from functions
     where project_id = $1 and type = $3 and deleted_at is null and id <> $2`,
    [projectId, functionId, type],
  );
  return rows[0].last;
}

/** Lists the functions of a type that are not deleted, in their order, and locks them until the transaction ends. */
export async function lockOrdered(
  client: Transaction,
  projectId: number,
  type: FunctionTypeName,
): Promise<Pick<FunctionRow, 'id' | 'name' | 'execution_order'>[]> {
  const { rows } = await client.query(
    `select id, name, execution_order from functions
     where project_id = $1 and type = $2 and deleted_at is null order by id for update`,
    [projectId, type],
  );
  return rows;
}

/** Lists the functions of a type that are not deleted, in their order. */
export async function listOrdered(
  queryable: Queryable,
  projectId: number,
  type: FunctionTypeName,
): Promise<ShownFunctionRow[]> {
  const { rows } = await queryable.query(
    `${SHOWN} where f.project_id = $1 and f.type = $2 and f.deleted_at is null
     order by f.execution_order nulls last, f.created_at, f.id`,
    [projectId, type],
  );
  return rows;
}

/** Lists functions whose filters take something from elsewhere, in the order of their keys, after one of them. */
export async function pageDependent(
  queryable: Queryable,
  after: FunctionKey | null,
  limit: number,
): Promise<VersionedFunction[]> {
  const { rows } = await queryable.query(
    `select *, xmin::text as row_version from functions
     where compiled_from is not null and deleted_at is null and ($1::int is null or (project_id, id) > ($1, $2::uuid))
     order by project_id, id limit $3`,
    [after?.projectId ?? null, after?.functionId ?? null, limit],
  );
  return rows.map(({ row_version: rowVersion, ...row }) => ({ row, rowVersion }));
}

/** Lists the functions of a project whose filters name a cohort, directly or through others. */
export async function functionsAsking(
  queryable: Queryable,
  projectId: number,
  cohortId: number,
): Promise<{ id: string; name: string; enabled: boolean }[]> {
  const { rows } = await queryable.query(
    `select id, coalesce(name, '') as name, enabled from functions
     where project_id = $1 and deleted_at is null and compiled_from is not null
       and exists (select from json_array_elements(coalesce(compiled_from -> 'cohorts', '[]')) c
         where (c ->> 'id')::bigint = $2) order by name, id`,
    [projectId, cohortId],
  );
  return rows;
}

/** Stores the result of another compilation, unless somebody has changed the function meanwhile. It is no change by a user. */
export async function storeCompiled(
  queryable: Queryable,
  { row, rowVersion }: VersionedFunction,
  patch: Partial<FunctionFields>,
): Promise<boolean> {
  const given = WRITABLE.filter((column) => patch[column] !== undefined);
  const assignments = given.map((column, index) => `${column} = $${index + 4}`);
  const { rowCount } = await queryable.query(
    `update functions set ${assignments.join(', ')} where project_id = $1 and id = $2 and xmin::text = $3`,
    [row.project_id, row.id, rowVersion, ...given.map((column) => stored(column, patch[column]))],
  );
  return rowCount === 1;
}

/** Counts the functions of a project that were made from each template. */
export async function countByTemplate(
  queryable: Queryable,
  projectId: number,
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await queryable.query(
    `select template_id, count(*)::int as count from functions
     where project_id = $1 and template_id is not null and deleted_at is null group by 1`,
    [projectId],
  );
  return new Map(rows.map(({ template_id, count }) => [template_id, count]));
}
