import { newestPage } from '../../db/newest-page.ts';
import type { Queryable, Transaction } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import type { IntervalLength } from '../../intervals/index.ts';
import type { Source } from '../../models/index.ts';
import { LOCK_KINDS } from './locks.ts';

export interface BatchExportRow {
  project_id: number;
  id: string;
  name: string;
  model: Source;
  destination_type: string;
  config: Record<string, unknown>;
  /** The secret keys of the configuration, encrypted by `reads/settings.ts`. Null: there are none. */
  secrets: string | null;
  /** `once`: it has no intervals, and exports the result of `hogql_query` when it is created. */
  interval: IntervalLength | 'once';
  timezone: string;
  /** How many seconds after midnight days begin, and after the midnight of Sunday weeks, in local time. */
  interval_offset: number;
  paused: boolean;
  start_at: string | null;
  end_at: string | null;
  last_paused_at: string | null;
  hogql_query: string | null;
  schema: unknown;
  filters: unknown;
  /** The cohorts that its filters and columns name. */
  asks_cohorts: number[];
  write_store: string | null;
  write_target: unknown;
  /** The folder below the export root that a `File` export does not leave. Null: the whole root. */
  folder: string | null;
  created_at: string;
  last_updated_at: string;
  deleted_at: string | null;
  /** Only intervals that end after this instant are due. */
  scheduled_from: string;
  /**
   * Where the export was last cut into other intervals: the last old one ends there, and the first new one begins. Null:
   * it never was.
   */
  seam_at: string | null;
}

const WRITABLE = [
  ...([
    'name',
    'model',
    'destination_type',
    'config',
    'secrets',
    'interval',
    'timezone',
    'interval_offset',
  ] as const),
  ...([
    'paused',
    'start_at',
    'end_at',
    'last_paused_at',
    'hogql_query',
    'schema',
    'filters',
    'asks_cohorts',
  ] as const),
  ...(['write_store', 'write_target', 'folder'] as const),
] as const;
const JSON_COLUMNS: ReadonlySet<string> = new Set(['config', 'schema', 'filters', 'write_target']);

export type BatchExportFields = Pick<BatchExportRow, (typeof WRITABLE)[number]>;
export type NewBatchExport = Partial<BatchExportFields> &
  Pick<BatchExportRow, 'project_id' | 'name' | 'model' | 'destination_type' | 'config' | 'interval'> & {
    /** Secrets are sealed for an id, so it is given if there are secrets. */
    id?: string;
  };

/** Identifies an export. */
export interface ExportKey {
  projectId: number;
  exportId: string;
}

export const keyOf = (row: Pick<BatchExportRow, 'project_id' | 'id'>): ExportKey => ({
  projectId: row.project_id,
  exportId: row.id,
});

const stored = (column: string, value: unknown): unknown =>
  JSON_COLUMNS.has(column) && value !== null ? JSON.stringify(value) : value;

export async function insertBatchExport(queryable: Queryable, row: NewBatchExport): Promise<BatchExportRow> {
  const given = WRITABLE.filter((column) => row[column] !== undefined);
  const columns = ['project_id', 'id', ...given];
  const values = [row.project_id, row.id ?? uuidv7(), ...given.map((column) => stored(column, row[column]))];
  const { rows } = await queryable.query(
    `insert into batch_exports (${columns.join(', ')})
     values (${columns.map((_, index) => `$${index + 1}`).join(', ')}) returning *`,
    values,
  );
  return rows[0];
}

/** Finds an export of one of these projects that is not deleted. */
export async function findBatchExportIn(
  queryable: Queryable,
  projectIds: readonly number[],
  id: string,
): Promise<BatchExportRow | undefined> {
  const { rows } = await queryable.query(
    'select * from batch_exports where project_id = any($1::int[]) and id = $2 and deleted_at is null',
    [projectIds, id],
  );
  return rows[0];
}

/** Finds an export that is not deleted, and locks it until the transaction ends, so that nobody else can change it. */
export async function lockBatchExport(
  client: Transaction,
  { projectId, exportId }: ExportKey,
): Promise<BatchExportRow | undefined> {
  const { rows } = await client.query(
    'select * from batch_exports where project_id = $1 and id = $2 and deleted_at is null for update',
    [projectId, exportId],
  );
  return rows[0];
}

/** An export and the version of its row. Every change of the row, whatever it changes, makes another version. */
export interface VersionedExport {
  row: BatchExportRow;
  version: string;
}

const versioned = ({ version, ...row }: BatchExportRow & { version: string }): VersionedExport => ({
  row,
  version,
});

/**
 * Finds an export that is not deleted, and its version. With `lock`, nobody else can change it until the transaction
 * ends: compare the version with that of an earlier call to learn whether somebody has changed it in between.
 */
export async function findVersion(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  { lock = false }: { lock?: boolean } = {},
): Promise<VersionedExport | undefined> {
  const { rows } = await queryable.query(
    `select *, xmin::text as version from batch_exports
     where project_id = $1 and id = $2 and deleted_at is null ${lock ? 'for update' : ''}`,
    [projectId, exportId],
  );
  return rows[0] && versioned(rows[0]);
}

/** Finds an export and holds it: nobody locks it until the transaction ends, but others may hold it too. */
export async function holdBatchExport(
  client: Transaction,
  { projectId, exportId }: ExportKey,
): Promise<BatchExportRow | undefined> {
  const { rows } = await client.query(
    'select * from batch_exports where project_id = $1 and id = $2 and deleted_at is null for key share',
    [projectId, exportId],
  );
  return rows[0];
}

/**
 * Finds an export by its id alone, also a deleted one. For workflows, which still run when their export has moved to
 * another project.
 */
export async function findBatchExportById(
  queryable: Queryable,
  id: string,
): Promise<BatchExportRow | undefined> {
  const { rows } = await queryable.query('select * from batch_exports where id = $1', [id]);
  return rows[0];
}

/** Finds exports by their ids alone, as `findBatchExportById` does. */
export async function findBatchExportsById(
  queryable: Queryable,
  ids: readonly string[],
): Promise<Map<string, BatchExportRow>> {
  const { rows } = await queryable.query('select * from batch_exports where id = any($1::uuid[])', [ids]);
  return new Map(rows.map((row: BatchExportRow) => [row.id, row]));
}

const LISTED = {
  ...{ table: 'batch_exports', as: 'e', columns: 'e.*', large: 'config, filters, hogql_query, schema' },
  where: 'project_id = any($1::int[]) and deleted_at is null',
};

/** Lists the exports of one or several projects that are not deleted, newest first. */
export async function listBatchExports(
  queryable: Queryable,
  projectIds: readonly number[],
  { limit, offset }: { limit: number; offset: number },
): Promise<{ count: number; rows: BatchExportRow[] }> {
  return newestPage(queryable, { ...LISTED, values: [projectIds] }, { limit, offset });
}

/** Whether an export `e` runs once, and neither its run nor a retry is at work or still to come. */
const IS_DONE = `e.interval = 'once' and not exists (
  select from batch_export_backfills b where b.project_id = e.project_id and b.batch_export_id = e.id
    and b.status in ('Starting', 'Running'))`;

/** Answers whether a project has at least so many exports, either of those that ran once and are done, or of all others. */
export async function hasBatchExports(
  queryable: Queryable,
  projectId: number,
  { atLeast, done }: { atLeast: number; done: boolean },
): Promise<boolean> {
  const { rows } = await queryable.query(
    `select from batch_exports e where project_id = $1 and deleted_at is null and (${IS_DONE}) = $3 offset $2 limit 1`,
    [projectId, atLeast - 1, done],
  );
  return rows.length > 0;
}

/**
 * Lists the exports of all projects that are not deleted in the order of their ids, beginning after the id `after`. With
 * `scheduled`, only those that have a schedule.
 */
export async function pageBatchExports(
  queryable: Queryable,
  after: string | null,
  limit: number,
  { scheduled = false }: { scheduled?: boolean } = {},
): Promise<BatchExportRow[]> {
  const { rows } = await queryable.query(
    `select * from batch_exports where deleted_at is null and ($1::uuid is null or id > $1)
       ${scheduled ? "and interval <> 'once'" : ''} order by id limit $2`,
    [after, limit],
  );
  return rows;
}

/** Changes an export and returns it. Undefined: there is no such export. */
export async function updateBatchExport(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  patch: Partial<BatchExportFields>,
): Promise<BatchExportRow | undefined> {
  const given = WRITABLE.filter((column) => patch[column] !== undefined);
  const assignments = given.map((column, index) => `${column} = $${index + 3}, `).join('');
  const { rows } = await queryable.query(
    `update batch_exports set ${assignments}last_updated_at = clock_timestamp()
     where project_id = $1 and id = $2 and deleted_at is null returning *`,
    [projectId, exportId, ...given.map((column) => stored(column, patch[column]))],
  );
  return rows[0];
}

/** Writes down that an export was cut into other intervals: from when on they are due, and where they begin. */
export async function setSeam(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  { scheduledFrom, seam }: { scheduledFrom: string; seam: string | null },
): Promise<BatchExportRow | undefined> {
  const { rows } = await queryable.query(
    `update batch_exports set scheduled_from = $3, seam_at = $4 where project_id = $1 and id = $2 returning *`,
    [projectId, exportId, scheduledFrom, seam],
  );
  return rows[0];
}

/** Pauses or resumes an export. False: it was so already, and nothing changed, not even the time of the last pause. */
export async function setPaused(queryable: Queryable, key: ExportKey, paused: boolean): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `update batch_exports set paused = $3, last_updated_at = clock_timestamp(),
       last_paused_at = case when $3 then clock_timestamp() else last_paused_at end
     where project_id = $1 and id = $2 and deleted_at is null and paused <> $3`,
    [key.projectId, key.exportId, paused],
  );
  return rowCount === 1;
}

/** A pause of an export. A trigger on `batch_exports` writes these rows, whoever pauses or resumes the export. */
export interface PauseRow {
  paused_at: string;
  /** Null: the export is still paused. */
  resumed_at: string | null;
}

/** Lists the pauses of an export that lasted beyond `after`, in their order. */
export async function listPauses(queryable: Queryable, key: ExportKey, after: string): Promise<PauseRow[]> {
  return (await listPausesOfEach(queryable, [{ ...key, after }])).get(key.exportId) ?? [];
}

/** Lists the pauses of each of these exports, as `listPauses` does, by export id. Exports without pauses are left out. */
export async function listPausesOfEach(
  queryable: Queryable,
  exports: readonly (ExportKey & { after: string })[],
): Promise<Map<string, PauseRow[]>> {
  const { rows } = await queryable.query(
    `select wanted.id, paused_at, resumed_at
     from unnest($1::int[], $2::uuid[], $3::timestamptz[]) as wanted (project_id, id, after)
     join batch_export_pauses p on p.project_id = wanted.project_id and p.batch_export_id = wanted.id
     where resumed_at is null or resumed_at > wanted.after order by paused_at`,
    [
      exports.map((one) => one.projectId),
      exports.map((one) => one.exportId),
      exports.map((one) => one.after),
    ],
  );
  const found = new Map<string, PauseRow[]>();
  for (const { id, ...pause } of rows) found.set(id, [...(found.get(id) ?? []), pause]);
  return found;
}

/**
 * Deletes an export. False: there is no such export. The row stays, because its runs need it. From now on other exports
 * may write the same keys.
 */
export async function deleteBatchExport(queryable: Queryable, key: ExportKey): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `update batch_exports set deleted_at = clock_timestamp(), last_updated_at = clock_timestamp(), secrets = null
     where project_id = $1 and id = $2 and deleted_at is null`,
    [key.projectId, key.exportId],
  );
  return rowCount === 1;
}

export interface StoreWriter {
  project_id: number;
  id: string;
  name: string;
  write_target: unknown;
}

/**
 * Lists the exports of all projects that write to a store, and locks the store until the transaction ends. So nobody
 * else can add an export between comparing with this list and saving.
 */
export async function lockStoreWriters(client: Transaction, store: string): Promise<StoreWriter[]> {
  await client.query('select pg_advisory_xact_lock($1, hashtext($2))', [LOCK_KINDS.exportStore, store]);
  const { rows } = await client.query(
    `select project_id, id, name, write_target from batch_exports
     where write_store = $1 and deleted_at is null order by id`,
    [store],
  );
  return rows;
}

/** Lists the exports of a project that name a cohort. */
export async function exportsAsking(
  queryable: Queryable,
  projectId: number,
  cohortId: number,
): Promise<{ id: string; name: string; paused: boolean }[]> {
  const { rows } = await queryable.query(
    `select id, name, paused from batch_exports
     where project_id = $1 and deleted_at is null and asks_cohorts @> array[$2::int] order by name, id`,
    [projectId, cohortId],
  );
  return rows;
}
