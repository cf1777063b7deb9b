import {
  int4Array,
  int8Array,
  NO_TEXT,
  textArray,
  timestampArray,
  uuidArray,
} from '../../db/binary-arrays.ts';
import type { Queryable } from '../../db/pool.ts';
import type { LogEntry } from '../rules/logs.ts';
import { addingCounts, type Count } from './counts.ts';

/** What an attempt of an invocation came to. */
export interface StoredResult {
  /** Its place in the queue, and under which lease it is held. */
  seq: number;
  lease: string;
  status: 'succeeded' | 'failed' | 'cancelled' | 'postponed';
  error: string | null;
  /** JSON: its attempts, or of a postponed one its progress. Null: it has to begin anew. */
  text: string | null;
  /** Of a postponed one. */
  attempt: number;
  /** Of a postponed one: in how many milliseconds it is due. */
  after: number;
  logs: readonly LogEntry[];
  counts: readonly Pick<Count, 'kind' | 'name' | 'count'>[];
}

/**
 * Takes invocations that have ended out of the queue and writes them into the history, puts postponed ones back, and adds what
 * all of them log and count, as long as their functions exist. All of that only where the lease still holds: returns of which
 * that is so. The others belong to somebody else by now. It is one statement, because each one waits for the processor when
 * the machine is full.
 */
export async function storeResults(
  queryable: Queryable,
  results: readonly StoredResult[],
): Promise<Set<number>> {
  if (results.length === 0) return new Set();
  const logs = results.flatMap(({ seq, logs }) => logs.map((line) => ({ ...line, seq })));
  const counts = results.flatMap(({ seq, counts }) => counts.map((one) => ({ ...one, seq })));
  const { rows } = await queryable.query({
    name: 'store-invocation-results',
    text: `with r as (select * from unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::int[], $7::bigint[])
         as r (seq, lease, status, error, text, attempt, after)),
       gone as (delete from function_queue q using r
         where r.status <> 'postponed' and q.seq = r.seq and q.lease = r.lease returning q.*),
       kept as (insert into function_invocations (project_id, id, function_id, version, mapping, event_uuid, event_timestamp,
           distinct_id, person_id, groups, globals, rerun_of, status, error, attempts, created_at, finished_at)
         select g.project_id, g.id, g.function_id, g.version, g.mapping, g.event_uuid, g.event_timestamp, g.distinct_id,
           g.person_id, g.groups, g.globals, g.rerun_of, r.status, nullif(r.error, '${NO_TEXT}'), r.text::json, g.created_at,
           clock_timestamp()
         from gone g join r on r.seq = g.seq),
       put_back as (update function_queue q set lease = null, held = false, attempt = r.attempt,
           progress = nullif(r.text, '${NO_TEXT}')::json, due_at = clock_timestamp() + r.after * interval '1 millisecond'
         from r where r.status = 'postponed' and q.seq = r.seq and q.lease = r.lease
         returning q.seq, q.project_id, q.function_id, q.id),
       ours as (select seq, project_id, function_id, id from gone
         union all select seq, project_id, function_id, id from put_back),
       logged as (insert into function_logs (project_id, function_id, instance_id, timestamp, level, message)
         select o.project_id, o.function_id, o.id, l.timestamp, l.level, l.message
         from unnest($8::bigint[], $9::timestamptz[], $10::text[], $11::text[]) as l (seq, timestamp, level, message)
         join ours o on o.seq = l.seq
         where exists (select from functions f where f.project_id = o.project_id and f.id = o.function_id)),
       counted as (${addingCounts(`(select o.project_id, o.function_id, c.kind, c.name, sum(c.count)::bigint as count
         from unnest($12::bigint[], $13::text[], $14::text[], $15::int[]) as c (seq, kind, name, count)
         join ours o on o.seq = c.seq group by 1, 2, 3, 4)`)})
     select seq from ours`,
    values: [
      int8Array(results.map((one) => one.seq)),
      uuidArray(results.map((one) => one.lease)),
      textArray(results.map((one) => one.status)),
      textArray(results.map((one) => one.error ?? NO_TEXT)),
      textArray(results.map((one) => one.text ?? NO_TEXT)),
      int4Array(results.map((one) => one.attempt)),
      results.map((one) => Math.round(one.after)),
      int8Array(logs.map((one) => one.seq)),
      timestampArray(logs.map((one) => Date.parse(one.timestamp))),
      textArray(logs.map((one) => one.level)),
      textArray(logs.map((one) => one.message)),
      int8Array(counts.map((one) => one.seq)),
      textArray(counts.map((one) => one.kind)),
      textArray(counts.map((one) => one.name)),
      int4Array(counts.map((one) => one.count)),
    ],
  });
  return new Set(rows.map((row) => row.seq));
}
