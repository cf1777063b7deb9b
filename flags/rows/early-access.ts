import type { Queryable } from '../../db/pool.ts';
import { fits } from '../../db/reading.ts';
import type { Stage } from '../rules/early-access.ts';

/** A feature that persons choose themselves. Its flag decides who has it. */
export interface EarlyAccessRow {
  project_id: number;
  id: string;
  flag_id: number;
  name: string;
  description: string;
  stage: Stage;
  documentation_url: string;
  payload: Record<string, unknown>;
  created_at: string;
  flag: { id: number; key: string; name: string; active: boolean; filters: Record<string, unknown> };
}

const WRITABLE = ['name', 'description', 'stage', 'documentation_url', 'payload'] as const;
export type EarlyAccessFields = Pick<EarlyAccessRow, (typeof WRITABLE)[number]>;

export interface EarlyAccessKey {
  projectId: number;
  featureId: string;
}

const COLUMNS = `e.project_id, e.id, e.flag_id, e.name, e.description, e.stage, e.documentation_url, e.payload, e.created_at,
  (select json_build_object('id', f.id, 'key', f.key, 'name', f.name, 'active', f.active, 'filters', f.filters)
   from feature_flags f where f.project_id = e.project_id and f.id = e.flag_id) as flag`;

/** How much a feature takes, without its flag. */
const BYTES = 'octet_length(e.description) + octet_length(e.payload::text)';

const written = (row: Partial<EarlyAccessFields>, column: (typeof WRITABLE)[number]) =>
  column === 'payload' ? JSON.stringify(row.payload) : row[column];

/** Makes a feature. Undefined: the flag belongs to one. */
export async function insertEarlyAccess(
  queryable: Queryable,
  row: EarlyAccessFields & Pick<EarlyAccessRow, 'project_id' | 'id' | 'flag_id'>,
): Promise<EarlyAccessRow | undefined> {
  const { rows } = await queryable.query(
    `with e as (
       insert into early_access_features (project_id, id, flag_id, ${WRITABLE.join(', ')})
       values ($1, $2, $3, ${WRITABLE.map((_, index) => `$${index + 4}`).join(', ')})
       on conflict (project_id, flag_id) do nothing returning *)
     select ${COLUMNS} from e`,
    [row.project_id, row.id, row.flag_id, ...WRITABLE.map((column) => written(row, column))],
  );
  return rows[0];
}

export async function findEarlyAccess(
  queryable: Queryable,
  { projectId, featureId }: EarlyAccessKey,
): Promise<EarlyAccessRow | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from early_access_features e where e.project_id = $1 and e.id = $2`,
    [projectId, featureId],
  );
  return rows[0];
}

/** Changes a feature and returns it. */
export async function updateEarlyAccess(
  queryable: Queryable,
  { projectId, featureId }: EarlyAccessKey,
  patch: Partial<EarlyAccessFields>,
): Promise<EarlyAccessRow | undefined> {
  const given = WRITABLE.filter((column) => patch[column] !== undefined);
  const assignments = given.map((column, index) => `${column} = $${index + 3}`);
  const { rows } = await queryable.query(
    `with e as (
       update early_access_features set ${['id = id', ...assignments].join(', ')}
       where project_id = $1 and id = $2 returning *)
     select ${COLUMNS} from e`,
    [projectId, featureId, ...given.map((column) => written(patch, column))],
  );
  return rows[0];
}

export async function deleteEarlyAccess(
  queryable: Queryable,
  { projectId, featureId }: EarlyAccessKey,
): Promise<void> {
  await queryable.query('delete from early_access_features where project_id = $1 and id = $2', [
    projectId,
    featureId,
  ]);
}

/** Lists features, newest first. */
export async function listEarlyAccess(
  queryable: Queryable,
  { projectId, limit, offset }: { projectId: number; limit: number; offset: number },
): Promise<{ count: number; rows: EarlyAccessRow[] }> {
  const counted = await queryable.query(
    'select count(*)::int as count from early_access_features where project_id = $1',
    [projectId],
  );
  const order = 'order by e.created_at desc, e.id desc';
  const { rows } = await queryable.query(
    `with fitting as (
       select e.id, row_number() over (${order}) as number, sum(${BYTES} + coalesce(f.filter_bytes, 0))
         over (${order} rows unbounded preceding) as bytes
       from (select * from early_access_features e where e.project_id = $1 ${order} limit $2 offset $3) e
       left join feature_flags f on f.project_id = e.project_id and f.id = e.flag_id)
     select ${COLUMNS} from fitting n join early_access_features e on e.project_id = $1 and e.id = n.id
     where ${fits('n')} order by n.number`,
    [projectId, limit, offset],
  );
  return { count: counted.rows[0].count, rows };
}

/** Whether a project has at least so many features. */
export async function hasEarlyAccess(
  queryable: Queryable,
  projectId: number,
  atLeast: number,
): Promise<boolean> {
  const { rows } = await queryable.query(
    'select from early_access_features where project_id = $1 offset $2 limit 1',
    [projectId, atLeast - 1],
  );
  return rows.length > 0;
}

/** The names of the features that flags belong to, by their ids. */
export async function featuresOfFlags(
  queryable: Queryable,
  projectId: number,
  flagIds: readonly number[],
): Promise<Map<number, string>> {
  const { rows } = await queryable.query(
    'select flag_id, name from early_access_features where project_id = $1 and flag_id = any($2::int[])',
    [projectId, flagIds],
  );
  return new Map(rows.map((row) => [row.flag_id, row.name]));
}

/** Notifies of projects whose features or surveys have changed. */
export const PUBLIC_OFFERS_CHANNEL = 'sluice_public_offers';

/** A feature as clients get it. */
export interface OfferedFeature {
  id: string;
  name: string;
  description: string;
  stage: Stage;
  documentationUrl: string;
  payload: Record<string, unknown>;
  flagKey: string;
}

/** Lists the features of a project whose flags can be on, the oldest first: as many as fit into so many bytes. */
export async function offeredFeatures(
  queryable: Queryable,
  projectId: number,
  bytes: number,
): Promise<OfferedFeature[]> {
  const { rows } = await queryable.query(
    `select id, name, description, stage, "documentationUrl", payload, "flagKey" from (
       select e.id, e.name, e.description, e.stage, e.documentation_url as "documentationUrl", e.payload,
         f.key as "flagKey", e.created_at,
         sum(${BYTES}) over (order by e.created_at, e.id rows unbounded preceding) as bytes
       from early_access_features e
       join feature_flags f on f.project_id = e.project_id and f.id = e.flag_id and f.active and not f.deleted
       where e.project_id = $1 and e.stage not in ('draft', 'archived')) as offered
     where bytes <= $2 order by created_at, id`,
    [projectId, bytes],
  );
  return rows;
}
