// Invocations that are delivered together, for targets that take lists.
import type { Queryable } from '../../db/pool.ts';
import { CLAIMED, COUNTING_LOST, type QueueRow } from './queue.ts';

interface Key {
  projectId: number;
  functionId: string;
}

export interface BatchRule {
  /** How many invocations a batch has at most. */
  most: number;
  /** How long the first of them waits for others, in seconds. */
  wait: number;
}

/** So many waiting invocations are looked at, to put them together. */
const LOOKED_AT = 10_000;

/**
 * Puts waiting invocations of a function together, in their order: as many as a batch takes, or those that have waited for
 * long enough. They stay together from now on. Those of different versions and mappings have batches of their own, and so has
 * one that was attempted alone. The function must be locked.
 */
export async function formBatches(
  queryable: Queryable,
  { projectId, functionId }: Key,
  { most, wait, count }: BatchRule & { count: number },
): Promise<void> {
  await queryable.query({
    name: 'form-delivery-batches',
    text: `with free as (
       select seq, version, mapping, created_at, case when progress is not null then seq end as alone
       from function_queue where project_id = $1 and function_id = $2 and batch is null and due_at <= clock_timestamp()
       order by due_at, seq limit $3 for update skip locked),
     placed as (
       select f.*, (row_number() over w - 1) / $4::int as chunk from free f
       window w as (partition by version, mapping, alone order by seq)),
     formed as (
       select version, mapping, alone, chunk, gen_random_uuid() as batch from placed group by 1, 2, 3, 4
       having count(*) = $4 or min(created_at) <= clock_timestamp() - $5 * interval '1 second'
       order by min(seq) limit $6)
     update function_queue q set batch = f.batch, lease = null from placed p join formed f
       on f.version = p.version and f.mapping is not distinct from p.mapping and f.alone is not distinct from p.alone
         and f.chunk = p.chunk
     where q.seq = p.seq`,
    values: [projectId, functionId, Math.min(LOOKED_AT, most * count), most, wait, count],
  });
}

/** Claims like `claim` whole batches of a function, the longest due first. Returns all of their invocations, in their order. */
export async function claimBatches(
  queryable: Queryable,
  { projectId, functionId }: Key,
  { lease, seconds, count }: { lease: string; seconds: number; count: number },
): Promise<QueueRow[]> {
  const { rows } = await queryable.query({
    name: 'claim-delivery-batches',
    text: `update function_queue q set lease = $3, held = true, ${COUNTING_LOST}, due_at = clock_timestamp() + $4 * interval '1 second'
     from (select batch, (array_agg(lease) filter (where lease is not null))[1] as lease, min(due_at) as due_at from function_queue
       where project_id = $1 and function_id = $2 and batch is not null and due_at <= clock_timestamp()
       group by batch order by min(due_at), batch limit $5) due
     where q.batch = due.batch and q.project_id = $1 returning ${CLAIMED}, q.batch`,
    values: [projectId, functionId, lease, seconds, count],
  });
  return rows.sort((a, b) => a.seq - b.seq);
}

/** In how many milliseconds the first invocation without a batch has waited for long enough. Null: there is none. */
export async function nextBatchIn(
  queryable: Queryable,
  { projectId, functionId }: Key,
  wait: number,
): Promise<number | null> {
  const { rows } = await queryable.query({
    name: 'next-delivery-batch',
    text: `select extract(epoch from min(created_at) - clock_timestamp())::float8 * 1000 + $3 * 1000 as left from (
       select created_at from function_queue
       where project_id = $1 and function_id = $2 and batch is null and due_at <= clock_timestamp()
       order by due_at, seq limit 1000) free`,
    values: [projectId, functionId, wait],
  });
  const { left } = rows[0];
  return left === null ? null : Math.max(0, left);
}

/** Takes invocations out of their batch, before it is sent for the first time. Answers whether all of them still were ours. */
export async function leaveBatch(
  queryable: Queryable,
  seqs: readonly number[],
  lease: string,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `update function_queue set batch = null, lease = null, held = false, due_at = clock_timestamp()
     where seq = any($1::bigint[]) and lease = $2`,
    [seqs, lease],
  );
  return rowCount === seqs.length;
}

/** Stores how far a batch is, with one of its invocations, if its lease still holds, and makes the lease longer. */
export async function keepBatchProgress(
  queryable: Queryable,
  {
    seq,
    batch,
    lease,
    progress,
    seconds,
  }: { seq: number; batch: string; lease: string; progress: unknown; seconds: number },
): Promise<boolean> {
  const { rows } = await queryable.query({
    name: 'keep-delivery-batch-progress',
    text: `with kept as (
       update function_queue set progress = case when seq = $1 then $3::json end, attempt = 0,
         due_at = clock_timestamp() + $4 * interval '1 second'
       where batch = $5 and lease = $2 returning seq)
     select exists (select from kept where seq = $1) as ours`,
    values: [seq, lease, JSON.stringify(progress), seconds, batch],
  });
  return rows[0].ours;
}
