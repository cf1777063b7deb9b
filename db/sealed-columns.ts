import type { Queryable } from './pool.ts';

/**
 * Every column that holds sealed secrets (secrets/envelope.ts), in one place: a backup names the keys it needs, and
 * rotating the keyring reaches all of them.
 */
export interface SealedColumn {
  table: string;
  column: string;
}

export const SEALED_COLUMNS: readonly SealedColumn[] = [{ table: 'batch_exports', column: 'secrets' }];

/** Ids of the keys that stored secrets need. */
export async function sealedKeyIds(
  queryable: Queryable,
  columns: readonly SealedColumn[] = SEALED_COLUMNS,
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
