import { partitionOf } from '../../db/event-partitions.ts';
import type { Queryable } from '../../db/pool.ts';

/** Which of the projects have functions that react to events, as SQL for the transaction that stores the events. */
export const reactingSql = (projectIds: readonly number[]): string =>
  `select string_agg(p::text, ',') from unnest('{${projectIds.map(Number).join(',')}}'::int[]) p
   where exists (select from functions f where f.project_id = p and f.enabled and f.deleted_at is null
     and f.type = 'destination')`;

/** The size of a page of Postgres, and how much of it rows fill. */
const PAGE = 8192;
const FILLED = 0.8;
/** Others write at the same time, so a transaction may reach over so many times the pages that it fills. */
const OTHERS = 3;
/** Even a small transaction takes pages that others have begun. */
const LEAST = 16;

export interface NewBatch {
  projects: readonly number[];
  count: number;
  /** Hexadecimal digits. */
  keys: string;
  bytes: number;
}

/** Writes a batch down, as SQL for the transaction that stores its events right after it. */
export function noteBatchSql({ projects, count, keys, bytes }: NewBatch, now: Date): string {
  const { name } = partitionOf(now);
  const pages = Math.ceil(bytes / (PAGE * FILLED)) * OTHERS + LEAST;
  return `insert into function_batches (xid, events, projects, partition, from_page, to_page, keys)
    select pg_current_xact_id()::xid, ${Number(count)}, '{${projects.map(Number).join(',')}}', '${name}',
      page, page + ${pages}, '\\x${keys}'
    from (select pg_relation_size(to_regclass('${name}')) / ${PAGE} as page) as place`;
}

/** A transaction whose events functions have not seen. */
export interface Batch {
  id: number;
  xid: number;
  events: number;
  projects: number[];
  partition: string;
  from_page: number | null;
  to_page: number | null;
}

/** Takes the oldest batches that nobody else has taken, until the transaction ends. */
export async function takeBatches(queryable: Queryable, limit: number): Promise<Batch[]> {
  const { rows } = await queryable.query({
    name: 'take-function-batches',
    text: `select id, xid::text::bigint as xid, events, projects, partition, from_page, to_page
           from function_batches order by id limit $1 for update skip locked`,
    values: [limit],
  });
  return rows;
}

/** Reads the keys of the events of batches, each of 28 bytes. */
export async function batchKeys(queryable: Queryable, ids: readonly number[]): Promise<Map<number, Buffer>> {
  const { rows } = await queryable.query(
    'select xid::text::bigint as xid, keys from function_batches where id = any($1)',
    [ids],
  );
  return new Map(rows.map((row) => [row.xid, row.keys]));
}

export async function deleteBatches(queryable: Queryable, ids: readonly number[]): Promise<void> {
  await queryable.query({
    name: 'delete-function-batches',
    text: 'delete from function_batches where id = any($1)',
    values: [ids],
  });
}
