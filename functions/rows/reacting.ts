import type { Queryable } from '../../db/pool.ts';
import type { CompiledContent } from '../rules/definition.ts';

/** Returns how often the functions of projects have changed. Projects without functions are left out. */
export async function changeCounts(
  queryable: Queryable,
  projectIds: readonly number[],
): Promise<Map<number, number>> {
  const { rows } = await queryable.query({
    name: 'function-change-counts',
    text: 'select project_id, version from function_projects where project_id = any($1)',
    values: [projectIds],
  });
  return new Map(rows.map((row) => [row.project_id, row.version]));
}

/** A function that reacts to events. */
export interface ReactingRow extends Pick<CompiledContent, 'filters' | 'masking' | 'mappings'> {
  id: string;
  name: string | null;
  version: number;
  /** Microseconds since 2000. */
  enabled_at: number;
  /** Whether its code or inputs contain the word `groups`. */
  reads_groups: boolean;
}

const COLUMNS = `id, name, version, filters, masking, mappings,
  ((extract(epoch from enabled_at) - extract(epoch from timestamptz '2000-01-01 00:00:00+00')) * 1000000)::bigint
    as enabled_at,
  hog like '%groups%' or inputs::text like '%groups%'
    or coalesce(mappings::text like '%groups%', false) as reads_groups`;

/** Functions of a project that react to events. */
export interface Reacting {
  project: { id: number; name: string };
  functions: ReactingRow[];
}

async function reacting(
  queryable: Queryable,
  projectId: number,
  condition: string,
  values: unknown[],
): Promise<Reacting | undefined> {
  const { rows: projects } = await queryable.query('select id, name from projects where id = $1', [
    projectId,
  ]);
  if (!projects[0]) return undefined;
  const { rows } = await queryable.query(
    `select ${COLUMNS} from functions where project_id = $1 and deleted_at is null and type = 'destination' and ${condition}
     order by created_at, id`,
    [projectId, ...values],
  );
  return { project: projects[0], functions: rows };
}

export const reactingFunctions = (queryable: Queryable, projectId: number): Promise<Reacting | undefined> =>
  reacting(queryable, projectId, 'enabled', []);

/** Finds one function, whether it is enabled or not. */
export const reactingFunction = (
  queryable: Queryable,
  projectId: number,
  functionId: string,
): Promise<Reacting | undefined> => reacting(queryable, projectId, 'id = $2', [functionId]);

/** The filters of a function that reacts to events, as JSON. */
export interface SievedRow {
  filters: string;
  mappings: string | null;
}

/** Lists the filters of a project's functions. */
export async function sievedFunctions(queryable: Queryable, projectId: number): Promise<SievedRow[]> {
  const { rows } = await queryable.query({
    name: 'sieved-functions',
    text: `select filters::text as filters, mappings::text as mappings from functions
           where project_id = $1 and enabled and deleted_at is null and type = 'destination'`,
    values: [projectId],
  });
  return rows;
}
