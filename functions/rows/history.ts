import { int4Array, textArray, uuidArray } from '../../db/binary-arrays.ts';
import type { Queryable } from '../../db/pool.ts';
import type { NewInvocation } from './queue.ts';

export const DISABLED =
  'The function was not run, because it had taken too long before. Save it, and run this again.';

/** Writes down invocations that are not run, so that they can be run later. */
export async function recordRefused(
  queryable: Queryable,
  invocations: readonly NewInvocation[],
  error: string,
): Promise<void> {
  if (invocations.length === 0) return;
  await queryable.query(
    `insert into function_invocations (project_id, id, function_id, version, mapping, event_uuid, event_timestamp,
       distinct_id, person_id, groups, status, error, attempts, created_at, finished_at)
     select project_id, id, function_id, version, nullif(mapping, -1), event_uuid, event_timestamp::timestamptz, distinct_id,
       person_id, nullif(groups, '')::json, 'failed', $11, '[]', clock_timestamp(), clock_timestamp()
     from unnest($1::uuid[], $2::int[], $3::uuid[], $4::int[], $5::int[], $6::uuid[], $7::text[], $8::text[],
       $9::uuid[], $10::text[]) as i (id, project_id, function_id, version, mapping, event_uuid, event_timestamp,
         distinct_id, person_id, groups)`,
    [
      uuidArray(invocations.map((one) => one.id)),
      int4Array(invocations.map((one) => one.projectId)),
      uuidArray(invocations.map((one) => one.functionId)),
      int4Array(invocations.map((one) => one.version)),
      int4Array(invocations.map((one) => one.mapping ?? -1)),
      uuidArray(invocations.map((one) => one.uuid)),
      textArray(invocations.map((one) => one.timestamp)),
      textArray(invocations.map((one) => one.distinctId)),
      uuidArray(invocations.map((one) => one.personId ?? undefined)),
      textArray(invocations.map((one) => one.groups ?? '')),
      error,
    ],
  );
}
