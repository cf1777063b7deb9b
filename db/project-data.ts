import type { Queryable } from './pool.ts';
import type { ProjectTable } from './project-tables.ts';

/** A table that has rows itself: one of the tables of projects, or one of its partitions. */
interface StoredTable {
  /** Quoted where it must be. */
  name: string;
  /** The columns of an index behind `project_id`, and their types. Empty: rows are found in any order. */
  key: { column: string; type: string }[];
}

/** Finds the tables with rows, in the order of the given ones, and by which index the rows of a project are found in order. */
async function storedTables(queryable: Queryable, tables: readonly ProjectTable[]): Promise<StoredTable[]> {
  const { rows } = await queryable.query(
    `select leaf.relid::regclass::text as name, coalesce(index.key, '[]') as key
     from unnest($1::text[]) with ordinality as given (name, place)
     cross join lateral (
       select coalesce(part.relid, given.name::regclass) as relid
       from (values (true)) one left join pg_partition_tree(given.name::regclass) part on true
       where part.relid is null or part.isleaf) leaf
     left join lateral (
       select (
         select jsonb_agg(jsonb_build_object('column', quote_ident(a.attname), 'type', format_type(a.atttypid, a.atttypmod))
             order by k.place)
         from unnest(i.indkey::int2[]) with ordinality as k (attnum, place)
         join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
         where k.place between 2 and i.indnkeyatts) as key
       from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam
       where i.indrelid = leaf.relid and i.indisvalid and i.indpred is null and i.indexprs is null and m.amname = 'btree'
         and (select a.attname from pg_attribute a where a.attrelid = i.indrelid and a.attnum = i.indkey[0]) = 'project_id'
         and not exists (select from pg_attribute a
           where a.attrelid = i.indrelid and a.attnum = any(i.indkey::int2[]) and not a.attnotnull)
       order by i.indisprimary desc, i.indisunique desc, i.indnatts, c.relname limit 1) index on true
     order by given.place, leaf.relid::regclass::text`,
    [tables.map((table) => table.name)],
  );
  return rows;
}

/**
 * Deletes up to `limit` rows of a project behind a place in the order of a key. Postgres passes by rows that are deleted but not
 * vacuumed yet, so a search from the beginning would take longer with each statement.
 */
async function deleteBehind(
  queryable: Queryable,
  { name, key }: StoredTable,
  { projectId, limit, place }: { projectId: number; limit: number; place: string[] | undefined },
): Promise<{ found: number; deleted: number; place: string[] | undefined }> {
  const columns = key.map(({ column }) => column);
  const behind = place
    ? `and (${columns.join(', ')}) > (${key.map(({ type }, index) => `$${index + 3}::${type}`).join(', ')})`
    : '';
  const order = (direction: string) =>
    columns.length > 0 ? `order by ${columns.map((one) => `${one} ${direction}`).join(', ')}` : '';
  const { rows } = await queryable.query(
    `with found as materialized (
       select ctid as place${columns.map((one) => `, ${one}`).join('')} from ${name}
       where project_id = $1 ${behind} ${order('asc')} limit $2),
     gone as (delete from ${name} as t using found where t.ctid = found.place returning 1)
     select (select count(*) from found) as found, (select count(*) from gone) as deleted,
       (select array[${columns.map((one) => `${one}::text`).join(', ')}]::text[] from found ${order('desc')} limit 1) as place`,
    [projectId, limit, ...(place ?? [])],
  );
  const { found, deleted, place: last } = rows[0];
  return { found, deleted, place: columns.length > 0 ? (last ?? undefined) : undefined };
}

/**
 * Deletes the data of a deleted project, and what was still written beside its configuration while that was deleted, such as logs.
 * Each statement deletes up to `limit` rows of one table, and yields their number. The end: nothing is left.
 */
export async function* deleteProjectRows(
  queryable: Queryable,
  projectId: number,
  limit: number,
  tables: readonly ProjectTable[],
): AsyncGenerator<number, void> {
  const deletable = tables.filter((one) => one.kind !== 'history');
  for (let isClean = false; !isClean; ) {
    isClean = true;
    for (const table of await storedTables(queryable, deletable)) {
      for (let place: string[] | undefined; ; ) {
        const some = await deleteBehind(queryable, table, { projectId, limit, place });
        // Somebody may have changed what was found, so that it is found again in the next round.
        if (some.found === 0) break;
        isClean = false;
        place = some.place;
        yield some.deleted;
      }
    }
  }
}
