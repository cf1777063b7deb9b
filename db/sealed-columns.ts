import type { Queryable } from './pool.ts';

/** A column that holds sealed secrets (secrets/envelope.ts). Products list theirs in their manifests. */
export interface SealedColumn {
  table: string;
  column: string;
}

/** Lists the ids of the keys that stored secrets need. */
export async function sealedKeyIds(
  queryable: Queryable,
  columns: readonly SealedColumn[],
): Promise<string[]> {
  const ids = new Set<string>();
  for (const { table, column } of columns) {
    const { rows } = await queryable.query(
      `select distinct split_part(${column}, '.', 2) as id from ${table} where ${column} is not null`,
    );
    for (const { id } of rows) ids.add(id);
  }
  return [...ids].sort();
}
