import { partitionOf } from '../../db/event-partitions.ts';
import type { Queryable } from '../../db/pool.ts';

/** The size of a page of Postgres. */
const PAGE = 8192;
const pagesOf = (partition: string) => `pg_relation_size(to_regclass('${partition}')) / ${PAGE}`;

/**
 * Asks which of the projects have functions that react to events, and where the rows of events end: SQL for the transaction
 * that will store the events. The answer has the partition, its pages, and the projects. Null: none.
 */
export function reactingSql(projectIds: readonly number[], now: Date): string {
  const { name } = partitionOf(now);
  return `select '${name}:' || coalesce(${pagesOf(name)}, 0) || ':' || string_agg(p::text, ',')
   from unnest('{${projectIds.map(Number).join(',')}}'::int[]) p
   where exists (select from functions f where f.project_id = p and f.enabled and f.deleted_at is null
     and f.type = 'destination')`;
}

/** Reads the projects out of the answer. */
export const reactingProjects = (answer: string): Set<number> =>
  new Set(
    answer
      .slice(answer.lastIndexOf(':') + 1)
      .split(',')
      .map(Number),
  );

export interface NewBatch {
  projects: readonly number[];
  count: number;
  /** Hexadecimal digits. */
  keys: string;
}

/** Writes a batch down, as SQL for the transaction that has just stored its events. `answer` is what it was told before. */
export function noteBatchSql({ projects, count, keys }: NewBatch, answer: string): string {
  const [partition = '', page] = answer.split(':');
  return `insert into function_batches (xid, events, projects, partition, from_page, to_page, keys)
    values (pg_current_xact_id()::xid, ${Number(count)}, '{${projects.map(Number).join(',')}}', '${partition}',
      ${Number(page)}, coalesce(${pagesOf(partition)}, 0), '\\x${keys}')`;
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
