import { type LogSearch, logConditions } from '../../db/log-search.ts';
import type { Queryable } from '../../db/pool.ts';
import type { LogLevel } from '../rules/logs.ts';
import type { FunctionKey } from './functions.ts';

export interface LogRow {
  function_id: string;
  instance_id: string;
  timestamp: string;
  level: LogLevel;
  message: string;
}

export interface LogQuery extends FunctionKey, LogSearch<LogLevel> {
  /** An invocation. */
  instanceId?: string | undefined;
}

/** Lists entries of a function, newest first. */
export async function listLogs(queryable: Queryable, query: LogQuery): Promise<LogRow[]> {
  const { instanceId } = query;
  const values: unknown[] = [query.projectId, query.functionId];
  const given = (value: unknown) => `$${values.push(value)}`;
  const conditions = ['project_id = $1', 'function_id = $2'];
  if (instanceId !== undefined) conditions.push(`instance_id = ${given(instanceId)}::uuid`);
  conditions.push(...logConditions(query, given));
  const { rows } = await queryable.query(
    `select function_id, instance_id, timestamp, level, message from function_logs
     where ${conditions.join(' and ')} order by timestamp desc, instance_id limit ${given(query.limit)}`,
    values,
  );
  return rows;
}

/** A line of the log of an invocation. */
export interface NewLogRow {
  projectId: number;
  functionId: string;
  instanceId: string;
  timestamp: string;
  level: LogLevel;
  message: string;
}

/** Adds lines to logs, of functions that still exist. */
export async function addLogs(queryable: Queryable, lines: readonly NewLogRow[]): Promise<void> {
  if (lines.length === 0) return;
  await queryable.query({
    name: 'add-function-logs',
    text: `insert into function_logs (project_id, function_id, instance_id, timestamp, level, message)
     select l.* from unnest($1::int[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::text[], $6::text[])
       as l (project_id, function_id, instance_id, timestamp, level, message)
     where exists (select from functions f where f.project_id = l.project_id and f.id = l.function_id)`,
    values: [
      lines.map((one) => one.projectId),
      lines.map((one) => one.functionId),
      lines.map((one) => one.instanceId),
      lines.map((one) => one.timestamp),
      lines.map((one) => one.level),
      lines.map((one) => one.message),
    ],
  });
}
