import type { Queryable } from './pool.ts';
import { fits } from './reading.ts';

/** Which rows a list has. All of it is SQL that comes from our code, but for the values. */
export interface NewestRows {
  /** It has `id` and `created_at`. */
  table: string;
  where: string;
  values: readonly unknown[];
  /** What is shown of a row, and the name of the row there. */
  columns: string;
  as: string;
  /** The columns that can be large. */
  large: string;
}

/** Reads a page of a table, newest first, which ends where there is no more room, and counts all rows. */
export async function newestPage<Row>(
  queryable: Queryable,
  { table, where, values, columns, as, large }: NewestRows,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ count: number; rows: Row[] }> {
  const counted = await queryable.query(`select count(*)::int as count from ${table} where ${where}`, [
    ...values,
  ]);
  const order = 'order by created_at desc, id desc';
  const page = `limit $${values.length + 1} offset $${values.length + 2}`;
  const { rows } = await queryable.query(
    `with shown as (select * from ${table} where ${where} ${order} ${page}),
     fitting as (
       select id, row_number() over (${order}) as number,
         sum(octet_length(concat(${large}))) over (${order} rows unbounded preceding) as bytes
       from shown)
     select ${columns} from fitting f join shown ${as} using (id) where ${fits('f')} order by f.number`,
    [...values, limit, offset],
  );
  return { count: counted.rows[0].count, rows };
}
