import type { Queryable } from '../../db/pool.ts';

/** Requests of a project on a day. */
export interface UsageRow {
  project_id: number;
  /** `2026-01-31` */
  day: string;
  requests: number;
  definitions: number;
  limited: number;
}

/** Adds to the counts, in the order of the key, so that processes that do so at once do not deadlock. */
export async function addUsage(queryable: Queryable, counts: readonly UsageRow[]): Promise<void> {
  await queryable.query(
    `insert into flag_usage as known (project_id, day, requests, definitions, limited)
     select project_id, day, requests, definitions, limited
     from jsonb_to_recordset($1::jsonb) as new (project_id integer, day date, requests bigint, definitions bigint, limited bigint)
     order by project_id, day
     on conflict (project_id, day) do update set requests = known.requests + excluded.requests,
       definitions = known.definitions + excluded.definitions, limited = known.limited + excluded.limited`,
    [JSON.stringify(counts)],
  );
}

const COUNTS = 'u.project_id, u.day::text, u.requests::float8, u.definitions::float8, u.limited::float8';

/** The counts of a project, newest day first. */
export async function usageOfProject(
  queryable: Queryable,
  projectId: number,
  days: { from: string; to: string },
): Promise<UsageRow[]> {
  const { rows } = await queryable.query(
    `select ${COUNTS} from flag_usage u
     where u.project_id = $1 and u.day between $2 and $3 order by u.day desc`,
    [projectId, days.from, days.to],
  );
  return rows;
}

/** The counts of the projects of an organization, newest day first. */
export async function usageOfOrganization(
  queryable: Queryable,
  organizationId: string,
  days: { from: string; to: string },
): Promise<UsageRow[]> {
  const { rows } = await queryable.query(
    `select ${COUNTS} from projects p join flag_usage u on u.project_id = p.id
     where p.organization_id = $1 and u.day between $2 and $3 order by u.day desc, u.project_id`,
    [organizationId, days.from, days.to],
  );
  return rows;
}
