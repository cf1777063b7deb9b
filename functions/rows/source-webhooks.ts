import type { Queryable } from '../../db/pool.ts';
import type { FunctionRow } from './functions.ts';

/** Tells of functions that take requests and have changed. The payload is the id of the function. */
export const SOURCE_WEBHOOKS_CHANNEL = 'sluice_source_webhooks';

/** A function that takes requests, with what its run needs. */
export interface SourceWebhookRow
  extends Pick<
    FunctionRow,
    'project_id' | 'id' | 'name' | 'version' | 'inputs_schema' | 'inputs' | 'secrets'
  > {
  bytecode: unknown[];
  /** The public key of the project. */
  project_token: string;
  /** See functions/rules/watcher.ts. */
  state: number;
  disabled_until: string | null;
  /** What it takes in memory. */
  bytes: number;
}

/** Finds an enabled function that takes requests. The id alone names it, whichever project it belongs to. */
export async function findSourceWebhook(
  queryable: Queryable,
  functionId: string,
): Promise<SourceWebhookRow | undefined> {
  const { rows } = await queryable.query(
    `select f.project_id, f.id, f.name, f.version, coalesce(s.state, 1) as state, s.disabled_until, f.inputs_schema, f.inputs, f.secrets, f.bytecode, p.api_token as project_token,
       octet_length(concat(f.inputs_schema, f.inputs, f.secrets, f.bytecode)) as bytes
     from functions f join projects p on p.id = f.project_id
     left join function_states s on s.project_id = f.project_id and s.function_id = f.id
     where f.id = $1 and f.type = 'source_webhook' and f.enabled and f.deleted_at is null and f.bytecode is not null`,
    [functionId],
  );
  return rows[0];
}
