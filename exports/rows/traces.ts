// Attempts that have begun to write files and have not completed their run. See the migration `export-folders-and-traces`.
import { type Pool, type Queryable, type Transaction, transaction } from '../../db/pool.ts';
import type { IntervalText } from '../../intervals/index.ts';
import type { BatchExportRow } from './batch-exports.ts';
import type { RunRow } from './runs.ts';

export interface TraceKey {
  exportId: string;
  fence: number;
}

export interface TraceRow {
  project_id: number;
  batch_export_id: string;
  fence: number;
  run_id: string;
  data_interval_start: string | null;
  data_interval_end: string;
  destination_type: string;
  config: Record<string, unknown>;
  secrets: string | null;
  folder: string | null;
  manifest_key: string;
  /** Null: the attempt has published nothing. */
  marks: Record<string, string> | null;
  begun_at: string;
  /** Since when the attempt is known to be over. */
  over_since: string | null;
  looks: number;
}

const SAME_INTERVAL = (one: string, other: string) =>
  `${one}.batch_export_id = ${other}.batch_export_id and ${one}.data_interval_end = ${other}.data_interval_end
   and ${one}.data_interval_start is not distinct from ${other}.data_interval_start`;

/**
 * Writes down that an attempt begins to write. False: files of the interval are being removed at this moment, so it must
 * not begin yet. Traces of earlier attempts at the run that published nothing are forgotten.
 */
export function beginTrace(
  pool: Pool,
  row: Pick<BatchExportRow, 'destination_type' | 'config' | 'secrets' | 'folder'>,
  run: Pick<
    RunRow,
    'project_id' | 'id' | 'batch_export_id' | 'fence' | 'data_interval_start' | 'data_interval_end'
  >,
  manifestKey: string,
): Promise<boolean> {
  return transaction(pool, async (client) => {
    const { batch_export_id: exportId, data_interval_start: start, data_interval_end: end } = run;
    // The lock makes this wait for whoever is about to take a lease, which then sees that the run is in progress.
    const { rows } = await client.query(
      `select leased_until > clock_timestamp() as leased from batch_export_traces
       where batch_export_id = $1 and data_interval_start is not distinct from $2::timestamptz
         and data_interval_end = $3 order by fence for update`,
      [exportId, start, end],
    );
    if (rows.some((one) => one.leased)) return false;
    await client.query(
      'delete from batch_export_traces where batch_export_id = $1 and run_id = $2 and fence < $3 and marks is null',
      [exportId, run.id, run.fence],
    );
    await client.query(
      `insert into batch_export_traces (project_id, batch_export_id, fence, run_id, data_interval_start, data_interval_end,
         destination_type, config, secrets, folder, manifest_key)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) on conflict do nothing`,
      [
        ...[run.project_id, exportId, run.fence, run.id, start, end, row.destination_type],
        ...[JSON.stringify(row.config), row.secrets, row.folder, manifestKey],
      ],
    );
    return true;
  });
}

/** Writes down which files an attempt is about to publish. */
export async function markTrace(
  queryable: Queryable,
  { exportId, fence }: TraceKey,
  marks: Readonly<Record<string, string>>,
): Promise<void> {
  await queryable.query(
    'update batch_export_traces set marks = $3 where batch_export_id = $1 and fence = $2',
    [exportId, fence, JSON.stringify(marks)],
  );
}

/** Forgets a trace: its run is completed, or there is nothing more to be found. */
export async function endTrace(queryable: Queryable, { exportId, fence }: TraceKey): Promise<void> {
  await queryable.query('delete from batch_export_traces where batch_export_id = $1 and fence = $2', [
    exportId,
    fence,
  ]);
}

/** Lists traces whose time has come, a few of each export, the longest due first. */
export async function listDueTraces(queryable: Queryable, now: string, limit: number): Promise<TraceKey[]> {
  const { rows } = await queryable.query(
    `select batch_export_id, fence from (
       select batch_export_id, fence, next_look_at,
         row_number() over (partition by batch_export_id order by next_look_at, fence) as turn
       from batch_export_traces where next_look_at <= $1) as due
     where turn <= 5 order by turn, next_look_at, fence limit $2`,
    [now, limit],
  );
  return rows.map((one) => ({ exportId: one.batch_export_id, fence: one.fence }));
}

/** How the run of a trace stands. Null: its row is gone. */
export interface ClaimedTrace extends TraceRow {
  run_status: RunRow['status'] | null;
  /** The last run that completed the interval. */
  completed_run_id: string | null;
}

/**
 * Takes the lease on a trace: until then no attempt at its interval begins to write. Undefined: somebody else has it, a
 * run of the interval is in progress, or the trace is gone. If a run is in progress, the trace waits for a minute.
 */
export function claimTrace(
  pool: Pool,
  { exportId, fence }: TraceKey,
  lease: string,
): Promise<ClaimedTrace | undefined> {
  return transaction(pool, async (client) => {
    const { rowCount } = await client.query(
      `select from batch_export_traces where batch_export_id = $1 and fence = $2
         and (leased_until is null or leased_until < clock_timestamp()) for update skip locked`,
      [exportId, fence],
    );
    if (rowCount === 0) return undefined;
    // A statement of its own: it sees every run that began before the lock was taken.
    const { rows } = await client.query(
      `select exists (
           select from batch_export_runs r where r.project_id = e.project_id and ${SAME_INTERVAL('r', 't')}
             and r.status in ('Starting', 'Running')) as active,
         (select r.status from batch_export_runs r where r.project_id = e.project_id and r.id = t.run_id) as run_status,
         (select r.id from batch_export_runs r where r.project_id = e.project_id and ${SAME_INTERVAL('r', 't')}
            and r.status = 'Completed' order by r.finished_at desc, r.id desc limit 1) as completed_run_id
       from batch_export_traces t left join batch_exports e on e.id = t.batch_export_id
       where t.batch_export_id = $1 and t.fence = $2`,
      [exportId, fence],
    );
    const { active, ...standing } = rows[0];
    if (active) {
      await client.query(
        `update batch_export_traces set next_look_at = clock_timestamp() + interval '1 minute'
         where batch_export_id = $1 and fence = $2`,
        [exportId, fence],
      );
      return undefined;
    }
    const trace = await lend(client, { exportId, fence }, lease);
    return { ...trace, ...standing };
  });
}

const LEASE = "clock_timestamp() + interval '2 minutes'";

async function lend(client: Transaction, { exportId, fence }: TraceKey, lease: string): Promise<TraceRow> {
  const { rows } = await client.query(
    `update batch_export_traces set lease = $3, leased_until = ${LEASE},
       over_since = coalesce(over_since, clock_timestamp())
     where batch_export_id = $1 and fence = $2 returning *`,
    [exportId, fence, lease],
  );
  return rows[0];
}

/** Extends a lease. False: it has run out, so nothing may be removed any more. */
export async function extendLease(
  queryable: Queryable,
  { exportId, fence }: TraceKey,
  lease: string,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `update batch_export_traces set leased_until = ${LEASE}
     where batch_export_id = $1 and fence = $2 and lease = $3 and leased_until > clock_timestamp()`,
    [exportId, fence, lease],
  );
  return rowCount === 1;
}

/** Gives a lease back, and says when to look again and how often the destination was looked at. */
export async function returnLease(
  queryable: Queryable,
  { exportId, fence }: TraceKey,
  lease: string,
  { looks, nextLookAt }: { looks: number; nextLookAt: string },
): Promise<void> {
  await queryable.query(
    `update batch_export_traces set lease = null, leased_until = null, looks = $4, next_look_at = $5
     where batch_export_id = $1 and fence = $2 and lease = $3`,
    [exportId, fence, lease, looks, nextLookAt],
  );
}

/** Answers whether a completed run of an export wrote a manifest, for this interval. */
export async function hasWritten(
  queryable: Queryable,
  { project_id: projectId, id: exportId }: Pick<BatchExportRow, 'project_id' | 'id'>,
  { start, end }: IntervalText,
  manifestKey: string,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `select from batch_export_runs
     where project_id = $1 and batch_export_id = $2 and data_interval_start is not distinct from $3::timestamptz
       and data_interval_end = $4 and status = 'Completed' and manifest_key = $5 limit 1`,
    [projectId, exportId, start, end, manifestKey],
  );
  return rowCount === 1;
}
