import type { Queryable } from './pool.ts';
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
