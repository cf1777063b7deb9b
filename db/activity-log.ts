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

/** Adds an entry. An entry that names a project and no organization belongs to the organization of the project. */
export async function insertActivity(queryable: Queryable, row: NewActivity): Promise<void> {
  await queryable.query(
    `insert into activity_log (id, organization_id, project_id, actor, user_id, personal_api_key_id, ip, request_id, scope,
       item_id, activity, detail)
     values ($1, coalesce($2, (select organization_id from projects where id = $3)), $3, $4, $5, $6, $7, $8, $9, $10, $11,
       $12)`,
    [
      uuidv7(),
      row.organization_id,
      row.project_id,
      row.actor,
      row.user_id,
      row.personal_api_key_id,
      row.ip,
      row.request_id,
      row.scope,
      row.item_id,
      row.activity,
      JSON.stringify(row.detail),
    ],
  );
}

const COLUMNS = `id, organization_id, project_id, at, actor, user_id, personal_api_key_id, ip, request_id, scope, item_id,
  activity, detail`;

/** Whose activity is listed: that of an organization, of a project, or of things of a project. */
export type ActivityPlace =
  | { organizationId: string }
  | { projectId: number; scope?: string; itemId?: string };

/** Lists the activity in a place, newest first. */
export async function listActivity(
  queryable: Queryable,
  place: ActivityPlace,
  options: { limit: number; offset: number },
): Promise<{ count: number; rows: ActivityRow[] }> {
  const ofProject = 'projectId' in place;
  const values: unknown[] = [ofProject ? place.projectId : place.organizationId];
  const conditions = [ofProject ? 'project_id = $1' : 'organization_id = $1'];
  if (ofProject && place.scope !== undefined) conditions.push(`scope = $${values.push(place.scope)}`);
  if (ofProject && place.itemId !== undefined) conditions.push(`item_id = $${values.push(place.itemId)}`);
  const condition = conditions.join(' and ');
  const counted = await queryable.query(
    `select count(*)::int as count from activity_log where ${condition}`,
    values,
  );
  const order = 'order by at desc, id desc';
  const { rows } = await queryable.query(
    `select ${COLUMNS} from (
       select *, sum(octet_length(detail::text)) over (${order} rows unbounded preceding) as bytes,
         row_number() over (${order}) as number
       from (select ${COLUMNS} from activity_log where ${condition} ${order}
         limit $${values.length + 1} offset $${values.length + 2}) as shown) as a
     where ${fits('a')} ${order}`,
    [...values, options.limit, options.offset],
  );
  return { count: counted.rows[0].count, rows };
}
