import type { Queryable } from '../../db/pool.ts';
import type { FunctionKey } from './functions.ts';

/** Tells of projects whose functions for browsers have changed. The payload is the id of the project. */
export const SITE_FUNCTIONS_CHANNEL = 'sluice_site_functions';

/** A function as browsers load it. */
export interface SiteFunctionRow {
  id: string;
  type: 'site_app' | 'site_destination';
  transpiled: string;
}

/** Those that browsers load. A function with a secret is never among them: every visitor could read it. */
const SERVED = `type in ('site_app', 'site_destination') and enabled and deleted_at is null
  and transpiled is not null and secrets is null`;

/**
 * Reads the public key of a project, and its functions that browsers load, in their order, as far as they have
 * `mostBytes` together. No key: there is no such project.
 */
export async function readSite(
  queryable: Queryable,
  projectId: number,
  mostBytes: number,
): Promise<{ token: string | undefined; functions: SiteFunctionRow[] }> {
  const { rows } = await queryable.query(
    `with served as (
       select id, sum(octet_length(transpiled)) over wanted as bytes, row_number() over wanted as number
       from functions where project_id = $1 and ${SERVED}
       window wanted as (order by execution_order nulls last, created_at, id))
     select p.api_token as token, f.id, f.type, f.transpiled
     from projects p
     left join served s on s.bytes <= $2
     left join functions f on f.project_id = $1 and f.id = s.id
     where p.id = $1 order by s.number`,
    [projectId, mostBytes],
  );
  return {
    token: rows[0]?.token,
    functions: rows.filter((one) => one.id !== null).map(({ token: _token, ...one }) => one),
  };
}

/** Counts the bytes that browsers load of the functions of a project, without one of them. */
export async function siteBytes(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
): Promise<number> {
  const { rows } = await queryable.query(
    `select coalesce(sum(octet_length(transpiled)), 0)::int as bytes from functions
     where project_id = $1 and id <> $2 and ${SERVED}`,
    [projectId, functionId],
  );
  return rows[0].bytes;
}
