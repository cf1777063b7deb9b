import type { Queryable } from '../../db/pool.ts';
import type { Tenant } from './api.ts';
import { idsOf } from './routes.ts';

/** A function of the tenant, with an invocation that waits, one that has failed, and a replay. */
export async function insertFunctionOf(queryable: Queryable, tenant: Tenant): Promise<void> {
  const { id, invocation_id: invocation, replay_id: replay } = idsOf(tenant);
  const { projectId } = tenant;
  await queryable.query(
    `insert into functions (project_id, id, type, name, description, enabled, hog, inputs_schema, inputs, filters, bytecode)
     values ($1, $2, 'destination', 'theirs', '', false, 'return 1', '[]', '{}', '{}', '["_H", 1, 33, 1, 38]')`,
    [projectId, id],
  );
  await queryable.query(
    `insert into function_invocations (project_id, id, function_id, version, status, error, attempts, created_at, finished_at)
     values ($1, $2, $3, 1, 'failed', 'theirs', '[]', now(), now())`,
    [projectId, invocation, id],
  );
  await queryable.query(
    `insert into function_queue (id, project_id, function_id, version, globals, clock, seed, due_at)
     values (gen_random_uuid(), $1, $2, 1, '{}', now(), 1, now() + interval '1 day')`,
    [projectId, id],
  );
  await queryable.query(
    `insert into function_replays (project_id, id, function_id, kind, dry_run, status, finished_at)
     values ($1, $2, $3, 'replay', false, 'completed', now())`,
    [projectId, replay, id],
  );
}
