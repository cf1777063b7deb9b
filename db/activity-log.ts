import type { Queryable, Transaction } from './pool.ts';
import { fits } from './reading.ts';
import { uuidv7 } from './uuid.ts';

export interface ActivityRow {
  id: string;
  organization_id: string | null;
  project_id: number | null;
  at: string;
  /** Who acted: a `user` through the API, the `operator` at the command line, or the `system`. */
  actor: 'user' | 'operator' | 'system';
  user_id: number | null;
  personal_api_key_id: string | null;
  ip: string | null;
  request_id: string | null;
  scope: string;
  item_id: string;
  activity: string;
  detail: Record<string, unknown>;
}

export type NewActivity = Omit<ActivityRow, 'id' | 'at'>;

/** Adds entries. One that names a project and no organization belongs to the organization of the project. */
export async function insertActivities(queryable: Queryable, rows: readonly NewActivity[]): Promise<void> {
  if (rows.length === 0) return;
  await queryable.query(
    `insert into activity_log (id, organization_id, project_id, actor, user_id, personal_api_key_id, ip, request_id, scope,
       item_id, activity, detail)
     select n.id, coalesce(n.organization_id, (select organization_id from projects p where p.id = n.project_id)),
       n.project_id, n.actor, n.user_id, n.personal_api_key_id, n.ip, n.request_id, n.scope, n.item_id, n.activity,
       n.detail::jsonb
     from json_to_recordset($1) as n (id uuid, organization_id uuid, project_id integer, actor text, user_id integer,
       personal_api_key_id text, ip inet, request_id text, scope text, item_id text, activity text, detail text)`,
    [JSON.stringify(rows.map((row) => ({ ...row, id: uuidv7(), detail: JSON.stringify(row.detail) })))],
  );
}

const COLUMNS = `id, organization_id, project_id, at, actor, user_id, personal_api_key_id, ip, request_id, scope, item_id,
  activity, detail`;

/** Lists the activity in a project or in a whole organization, newest first: all of it, or that of one kind or thing. */
export async function listActivity(
  queryable: Queryable,
  place: { organizationId: string } | { projectId: number },
  options: { limit: number; offset: number; scope?: string | undefined; itemId?: string | undefined },
): Promise<{ count: number; rows: ActivityRow[] }> {
  const [owner, value] =
    'projectId' in place
      ? ['project_id = $1', place.projectId]
      : ['organization_id = $1', place.organizationId];
  const condition = `${owner} and ($2::text is null or scope = $2) and ($3::text is null or item_id = $3)`;
  const values = [value, options.scope ?? null, options.itemId ?? null];
  const counted = await queryable.query(
    `select count(*)::int as count from activity_log where ${condition}`,
    values,
  );
  const order = 'order by at desc, id desc';
  const { rows } = await queryable.query(
    `select ${COLUMNS} from (
       select *, sum(octet_length(detail::text)) over (${order} rows unbounded preceding) as bytes,
         row_number() over (${order}) as number
       from (select ${COLUMNS} from activity_log where ${condition} ${order} limit $4 offset $5) as shown) as a
     where ${fits('a')} ${order}`,
    [...values, options.limit, options.offset],
  );
  return { count: counted.rows[0].count, rows };
}

/** The log can only be added to. The transaction that says so may forget. */
const MAY_FORGET = "select set_config('sluice.forgets', 'activity_log', true)";

/** The ids of entries are in the order of their times. */
const firstIdOf = (instant: Date) => `${uuidv7(instant.getTime()).slice(0, 14)}7000-8000-000000000000`;

/** Deletes entries from before an instant, the oldest ones first. */
export async function deleteActivitiesBefore(
  client: Transaction,
  instant: Date,
  limit: number,
): Promise<number> {
  await client.query(MAY_FORGET);
  const { rowCount } = await client.query(
    `delete from activity_log where id = any(array(
       select id from activity_log where id < $1 and at < $2 order by id limit $3))`,
    [firstIdOf(instant), instant, limit],
  );
  return rowCount ?? 0;
}

/** Whose log it is: that of a project, or what an organization has beside its projects. */
export interface LogOwner {
  project_id: number | null;
  organization_id: string | null;
}

/** Lists whose log has grown since an instant. */
export async function logsGrownSince(queryable: Queryable, instant: Date): Promise<LogOwner[]> {
  const { rows } = await queryable.query(
    `select distinct project_id, case when project_id is null then organization_id end as organization_id
     from activity_log where id >= $1 order by 1, 2`,
    [firstIdOf(instant)],
  );
  return rows;
}

/** How much of a log is kept. */
export interface LogBounds {
  /** So many entries. */
  entries: number;
  /** So many bytes of details. Older entries only say who changed what. */
  bytes: number;
}

export interface ExcessEntry {
  id: string;
  bytes: number;
  /** The entry goes as a whole, and not only its details. */
  goes: boolean;
}

/** Details of so many bytes are kept anyway. */
const SMALL = 512;
/** A log of so few entries is never too large. */
const FEW = 100;

/** Lists entries of a log that are too many, or whose details are, the oldest ones first. */
export async function excessOf(
  queryable: Queryable,
  { project_id: projectId, organization_id: organizationId }: LogOwner,
  { entries, bytes }: LogBounds,
  limit: number,
): Promise<ExcessEntry[]> {
  const [owner, value] =
    projectId !== null
      ? ['project_id = $1', projectId]
      : ['project_id is null and organization_id is not distinct from $1::uuid', organizationId];
  const order = 'order by at desc, id desc';
  const { rows: many } = await queryable.query(
    `select from activity_log where ${owner} ${order} offset $2 limit 1`,
    [value, Math.min(FEW, entries)],
  );
  if (many.length === 0) return [];
  const { rows } = await queryable.query(
    `with sized as (select at, id, pg_column_size(detail) as size from activity_log where ${owner}),
     ranked as (
       select *, row_number() over (${order}) as number,
         sum(size) over (${order} rows unbounded preceding) as newer_bytes from sized)
     select id, size as bytes, number > $2 as goes from ranked
     where number > $2 or (newer_bytes > $3 and size > ${SMALL}) order by at, id limit $4`,
    [value, entries, bytes, limit],
  );
  return rows;
}

/** Deletes entries, and takes the details of others away, but for the name of the thing. */
export async function forgetExcess(client: Transaction, excess: readonly ExcessEntry[]): Promise<void> {
  await client.query(MAY_FORGET);
  const ids = (goes: boolean) => excess.filter((one) => one.goes === goes).map((one) => one.id);
  await client.query('delete from activity_log where id = any($1::uuid[])', [ids(true)]);
  await client.query(
    `update activity_log set detail = jsonb_strip_nulls(jsonb_build_object(
       'name', left(detail ->> 'name', 100), 'is_shortened', true)) where id = any($1::uuid[])`,
    [ids(false)],
  );
}
