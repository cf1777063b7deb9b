import type { Queryable } from './pool.ts';

/** A column that holds sealed secrets (secrets/envelope.ts). Products list theirs in their manifests. */
export interface SealedColumn {
  table: string;
  column: string;
  /**
   * The context in which the secrets of a row are sealed, by its `id`. Given for columns in which an older version stored
   * secrets as they are, so that they can be sealed.
   */
  contextOf?: (id: string) => string;
}

/** How sealed values begin. Their second part is the id of the key. */
const SEALED = "like 'slc1.%'";
const KEY_ID = (column: string) => `split_part(${column}, '.', 2)`;

/** How many values of a column need a key. Null: they are not sealed. */
export interface SealedCount {
  table: string;
  column: string;
  keyId: string | null;
  values: number;
}

/** Counts the secrets that are stored, by the key that they need. */
export async function countSealed(
  queryable: Queryable,
  columns: readonly SealedColumn[],
): Promise<SealedCount[]> {
  const counts: SealedCount[] = [];
  for (const { table, column } of columns) {
    const { rows } = await queryable.query(
      `select case when ${column} ${SEALED} then ${KEY_ID(column)} end as "keyId", count(*)::int as values
       from ${table} where ${column} is not null group by 1 order by 1`,
    );
    counts.push(...rows.map((row) => ({ table, column, ...row })));
  }
  return counts;
}

/** Lists the ids of the keys that stored secrets need. */
export async function sealedKeyIds(
  queryable: Queryable,
  columns: readonly SealedColumn[],
): Promise<string[]> {
  const counts = await countSealed(queryable, columns);
  return [...new Set(counts.flatMap(({ keyId }) => (keyId === null ? [] : [keyId])))].sort();
}

/** A stored secret, and where it is at the moment. */
export interface StoredSecret {
  place: string;
  /** The `id` of its row, in columns that have a context. */
  id: string | null;
  value: string;
}

/** Lists secrets of a column that are not sealed with the key, from a place on. */
export async function listOtherSecrets(
  queryable: Queryable,
  { table, column, contextOf }: SealedColumn,
  keyId: string,
  after: string,
  limit: number,
): Promise<StoredSecret[]> {
  const { rows } = await queryable.query(
    `select ctid::text as place, ${contextOf ? 'id::text' : 'null'} as id, ${column} as value from ${table}
     where ctid > $2::tid and not (${column} ${SEALED} and ${KEY_ID(column)} = $1) order by ctid limit $3`,
    [keyId, after, limit],
  );
  return rows;
}

/** Replaces secrets by others. A value that was changed meanwhile stays. Returns how many were replaced. */
export async function replaceSecrets(
  queryable: Queryable,
  { table, column }: SealedColumn,
  changes: readonly { place: string; value: string; by: string }[],
): Promise<number> {
  const { rowCount } = await queryable.query(
    `update ${table} set ${column} = change.by
     from unnest($1::tid[], $2::text[], $3::text[]) as change (place, value, by)
     where ${table}.ctid = change.place and ${table}.${column} = change.value`,
    [changes.map((one) => one.place), changes.map((one) => one.value), changes.map((one) => one.by)],
  );
  return rowCount ?? 0;
}
