import type { Queryable } from '../../db/pool.ts';

/** Answers whether so many invocations of a function wait, or of a project. */
export async function hasBacklog(
  queryable: Queryable,
  { projectId, functionId }: { projectId: number; functionId?: string },
  atLeast: number,
): Promise<boolean> {
  const { rows } =
    functionId === undefined
      ? await queryable.query({
          name: 'project-has-backlog',
          text: 'select from function_queue where project_id = $1 offset $2 limit 1',
          values: [projectId, atLeast - 1],
        })
      : await queryable.query({
          name: 'function-has-backlog',
          text: 'select from function_queue where project_id = $1 and function_id = $2 offset $3 limit 1',
          values: [projectId, functionId, atLeast - 1],
        });
  return rows.length > 0;
}

/** An invocation for something that is no stored event. */
export interface UnstoredInvocation {
  id: string;
  projectId: number;
  functionId: string;
  version: number;
  distinctId: string | null;
  /** What the program sees. */
  globals: Record<string, unknown>;
  /** Milliseconds. */
  clock: number;
  seed: number;
}

export async function enqueueUnstored(
  queryable: Queryable,
  invocations: readonly UnstoredInvocation[],
): Promise<void> {
  if (invocations.length === 0) return;
  await queryable.query({
    name: 'enqueue-unstored',
    text: `insert into function_queue (id, project_id, function_id, version, distinct_id, globals, clock, seed)
     select i.id, i.project_id, i.function_id, i.version, i.distinct_id, i.globals, i.clock, i.seed
     from json_to_recordset($1) as i (id uuid, project_id int, function_id uuid, version int, distinct_id text, globals json,
       clock timestamptz, seed int)`,
    values: [
      JSON.stringify(
        invocations.map((one) => ({
          ...{ id: one.id, project_id: one.projectId, function_id: one.functionId, version: one.version },
          ...{ distinct_id: one.distinctId, globals: one.globals, seed: one.seed },
          clock: new Date(one.clock).toISOString(),
        })),
      ),
    ],
  });
}
