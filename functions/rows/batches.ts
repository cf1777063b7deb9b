import { partitionOf } from '../../db/event-partitions.ts';
import type { Queryable } from '../../db/pool.ts';

/** The size of a page of Postgres. */
const PAGE = 8192;
const pagesOf = (partition: string) => `pg_relation_size(to_regclass('${partition}')) / ${PAGE}`;

/**
 * Asks which of the projects have functions that react to events, and where the rows of events end: SQL for the transaction
 * that will store the events. The answer has the partition, its pages, and each project with the version of its functions.
 * Null: none.
 */
export function reactingSql(projectIds: readonly number[], now: Date): string {
  const { name } = partitionOf(now);
  return `select '${name}:' || coalesce(${pagesOf(name)}, 0) || ':' || string_agg(p || '.' || coalesce(
     (select version from function_projects v where v.project_id = p), 0), ',')
   from unnest('{${projectIds.map(Number).join(',')}}'::int[]) p
   where exists (select from functions f where f.project_id = p and f.enabled and f.deleted_at is null
     and f.type = 'destination')`;
}

/** What a transaction was told before it stored its events. */
export interface Answer {
  partition: string;
  page: number;
  /** The version of the functions of each project that has some. */
  projects: ReadonlyMap<number, number>;
}

export function readAnswer(answer: string): Answer {
  const [partition = '', page = '', projects = ''] = answer.split(':');
  const versions = projects.split(',').map((one) => one.split('.').map(Number) as [number, number]);
  return { partition, page: Number(page), projects: new Map(versions) };
}

/** Events that no function can want. */
export interface Skipped {
  project: number;
  /** The name of the events. Null: no function names them. */
  name: string | null;
  count: number;
}

export interface NewBatch {
  projects: readonly number[];
  count: number;
  /** Hexadecimal digits. */
  keys: string;
  /** Whether these are all events of the transaction for the projects. */
  isWhole: boolean;
  skipped: readonly Skipped[];
}

/** Writes a batch down, as SQL for the transaction that has just stored its events. */
export function noteBatchSql(batch: NewBatch, { partition, page }: Answer): string {
  const { projects, count, keys, isWhole, skipped } = batch;
  const json = skipped.length === 0 ? 'null' : `'${JSON.stringify(skipped).replaceAll("'", "''")}'`;
  return `insert into function_batches (xid, events, projects, partition, from_page, to_page, keys, skipped)
    values (pg_current_xact_id()::xid, ${Number(count)}, '{${projects.map(Number).join(',')}}', '${partition}',
      ${isWhole ? `${Number(page)}, coalesce(${pagesOf(partition)}, 0)` : 'null, null'}, '\\x${keys}', ${json})`;
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
  skipped: Skipped[] | null;
  /** Microseconds since 2000. */
  noted_at: number;
}

/** Which batches to take: those with events of these projects only, or those with events of others, too. */
export interface Lane {
  of: 'these' | 'others';
  projects: readonly number[];
}

/** Takes the oldest batches that nobody else has taken, until the transaction ends. */
export async function takeBatches(queryable: Queryable, limit: number, lane?: Lane): Promise<Batch[]> {
  const { rows } = await queryable.query({
    name: `take-function-batches${lane ? `-of-${lane.of}` : ''}`,
    text: `select id, xid::text::bigint as xid, events, projects, partition, from_page, to_page, skipped,
             ((extract(epoch from noted_at) - extract(epoch from timestamptz '2000-01-01 00:00:00+00')) * 1000000)::bigint
               as noted_at
           from function_batches${lane ? ` where ${lane.of === 'others' ? 'not ' : ''}projects <@ $2::int[]` : ''}
           order by id limit $1 for update skip locked`,
    values: lane ? [limit, lane.projects] : [limit],
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
