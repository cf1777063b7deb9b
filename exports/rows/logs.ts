import { type LogSearch, logConditions } from '../../db/log-search.ts';
import type { Queryable } from '../../db/pool.ts';
import { storableText } from '../../db/storable-text.ts';
import type { ExportKey } from './batch-exports.ts';

export const LOG_LEVELS = ['DEBUG', 'INFO', 'LOG', 'WARNING', 'ERROR'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LogEntry {
  level: LogLevel;
  message: string;
}

export interface LogRow extends LogEntry {
  id: number;
  batch_export_id: string;
  run_id: string | null;
  timestamp: string;
}

const MAX_MESSAGE = 10_000;
/** How many entries of a run are kept. Warnings and errors, which come at the end, have some more room. */
export const MAX_RUN_ENTRIES = 1_000;
export const MAX_RUN_TROUBLES = 1_200;

/** Adds entries in their order, up to the limit of the run. Returns how many. */
export async function insertLogs(
  queryable: Queryable,
  { projectId, exportId }: ExportKey,
  runId: string | null,
  entries: readonly LogEntry[],
): Promise<number> {
  if (entries.length === 0) return 0;
  const { rowCount } = await queryable.query(
    `with already as (
       select count(*) as entries from batch_export_logs where project_id = $1 and run_id = $3::uuid)
     insert into batch_export_logs (project_id, batch_export_id, run_id, level, message)
     select $1, $2, $3::uuid, level, message
     from already, unnest($4::text[], $5::text[]) with ordinality as new (level, message, number)
     where $3 is null or entries + number <= case when level in ('WARNING', 'ERROR') then ${MAX_RUN_TROUBLES}
       else ${MAX_RUN_ENTRIES} end
     order by number`,
    [
      projectId,
      exportId,
      runId,
      entries.map((one) => one.level),
      entries.map((one) => storableText(one.message, MAX_MESSAGE)),
    ],
  );
  return rowCount ?? 0;
}

export interface LogQuery extends ExportKey, LogSearch<LogLevel> {
  runId?: string | undefined;
}

/** Lists entries, newest first. */
export async function listLogs(queryable: Queryable, query: LogQuery): Promise<LogRow[]> {
  const { runId } = query;
  const values: unknown[] = [query.projectId, query.exportId];
  const given = (value: unknown) => `$${values.push(value)}`;
  const conditions = ['project_id = $1', 'batch_export_id = $2'];
  if (runId !== undefined) conditions.push(`run_id = ${given(runId)}`);
  conditions.push(...logConditions(query, given));
  const { rows } = await queryable.query(
    `select id, batch_export_id, run_id, timestamp, level, message from batch_export_logs
     where ${conditions.join(' and ')} order by timestamp desc, id desc limit ${given(query.limit)}`,
    values,
  );
  return rows;
}

/** Deletes up to `limit` entries of all exports from before an instant. Returns how many. */
export async function deleteOldLogs(queryable: Queryable, before: string, limit: number): Promise<number> {
  const { rowCount } = await queryable.query(
    `delete from batch_export_logs where ctid = any(array(
       select ctid from batch_export_logs where timestamp < $1::timestamptz limit $2))`,
    [before, limit],
  );
  return rowCount ?? 0;
}
