import type { Queryable } from './pool.ts';

/**
 * Updates the given fields of a row. The names of the table and the columns come from our code and never from a
 * request: the caller passes the columns that it allows.
 */
export async function updateRow(
  queryable: Queryable,
  table: string,
  key: Record<string, unknown>,
  columns: readonly string[],
  patch: Record<string, unknown>,
  /** Sets `updated_at` too, by the clock of Postgres, which also sets `created_at`. */
  { stamp = false } = {},
): Promise<void> {
  const given = columns.filter((column) => patch[column] !== undefined);
  if (given.length === 0) return;
  const keys = Object.keys(key);
  const assignments = given.map((column, index) => `${column} = $${index + 1}`);
  if (stamp) assignments.push('updated_at = clock_timestamp()');
  const conditions = keys.map((column, index) => `${column} = $${given.length + index + 1}`);
  await queryable.query(`update ${table} set ${assignments.join(', ')} where ${conditions.join(' and ')}`, [
    ...given.map((column) => patch[column]),
    ...keys.map((column) => key[column]),
  ]);
}
