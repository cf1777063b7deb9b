import type { Queryable } from '../db/pool.ts';

export interface BackupTable {
  name: string;
  /** Columns that hold data. Generated columns are left out, because Postgres computes them again. */
  columns: string[];
}

/**
 * Tables that a backup leaves out: the list of migrations, which a restore writes itself, counters that expire, the passwords of
 * this database's own roles and the secret of its notices, and queries in the background, whose results are kept for an hour.
 */
const LEFT_OUT = [
  ...['migrations', 'rate_limits', 'database_roles', 'notice_secret'],
  ...['background_queries', 'background_query_parts'],
];

/**
 * Lists every table of the installation, each after the tables that it references. The list comes from the catalogue of
 * Postgres, so a new table is in the next backup by itself. A partitioned table counts as one.
 */
export async function tablesInOrder(queryable: Queryable): Promise<BackupTable[]> {
  const { rows } = await queryable.query<{ name: string; columns: string[]; needs: string[] }>(
    `select c.relname as name,
       (select json_agg(a.attname order by a.attnum) from pg_attribute a
         where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns,
       coalesce((select json_agg(distinct f.relname) from pg_constraint k join pg_class f on f.oid = k.confrelid
         where k.conrelid = c.oid and k.contype = 'f' and f.oid <> c.oid), '[]') as needs
     from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relname <> all($1)
     order by c.relname`,
    [LEFT_OUT],
  );
  const ordered: typeof rows = [];
  let waiting = rows;
  while (waiting.length > 0) {
    const ready = waiting.filter((table) =>
      table.needs.every((name) => ordered.some((one) => one.name === name)),
    );
    if (ready.length === 0) {
      throw new Error(
        `tables reference each other in a circle: ${waiting.map((one) => one.name).join(', ')}`,
      );
    }
    ordered.push(...ready);
    waiting = waiting.filter((table) => !ready.includes(table));
  }
  return ordered.map(({ name, columns }) => ({ name, columns }));
}

export interface SequenceState {
  name: string;
  value: number;
}

/** Lists the last values of the sequences that were used. */
export async function sequences(queryable: Queryable): Promise<SequenceState[]> {
  const { rows } = await queryable.query(
    `select sequencename as name, last_value as value from pg_sequences
     where schemaname = 'public' and last_value is not null order by sequencename`,
  );
  return rows;
}
