import type { Queryable } from '../../db/pool.ts';

/** Leaves events to turns of their project alone. Each key has 28 bytes. */
export async function addLateKeys(queryable: Queryable, projectId: number, keys: Buffer): Promise<void> {
  await queryable.query('insert into function_late_batches (project_id, keys) values ($1, $2)', [
    projectId,
    keys,
  ]);
}

export interface LateBatch {
  id: number;
  project_id: number;
  keys: Buffer;
}

/** Takes the first batch of the project that has waited longest for a turn. Undefined: none waits. */
export async function takeLate(queryable: Queryable): Promise<LateBatch | undefined> {
  const { rows } = await queryable.query({
    name: 'take-late-batch',
    text: `select id, project_id, keys from function_late_batches
     order by tried_at, id limit 1 for update skip locked`,
  });
  return rows[0];
}

/** Stores what is left of a batch, or removes it. */
export async function updateLate(queryable: Queryable, id: number, keys: Buffer): Promise<void> {
  if (keys.length === 0) await queryable.query('delete from function_late_batches where id = $1', [id]);
  else {
    await queryable.query(
      'update function_late_batches set keys = $2, tried_at = clock_timestamp() where id = $1',
      [id, keys],
    );
  }
}
