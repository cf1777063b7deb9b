import { type Pool, type Transaction, transaction } from '../db/pool.ts';
import { isStatementTimeout } from '../db/reading.ts';
import { quoted } from '../db/sql-literal.ts';
import type { ModelQuery } from './model-query.ts';

/** The first rows of an interval, as they would be exported; values as JSON has them. */
export interface Preview {
  columns: string[];
  rows: unknown[][];
}

export interface Estimate {
  rows: number;
  /** Whether the rows were counted; otherwise it is the planner's guess. */
  exact: boolean;
  /** About what the rows take as JSON lines, without compression. */
  bytes: number;
}

const SAMPLE_ROWS = 1_000;
/** Postgres's number of the type text. */
const TEXT = 25;

async function inTransaction<T>(
  pool: Pool,
  query: ModelQuery,
  timeoutMs: number,
  work: (client: Transaction) => Promise<T>,
): Promise<T> {
  return transaction(pool, async (client) => {
    const settings = Object.entries(query.settings).map(
      ([name, value]) => `set local ${name} = ${quoted(value)}; `,
    );
    await client.query(
      `set transaction read only; ${settings.join('')}set local statement_timeout = ${Math.max(1, Math.floor(timeoutMs))}`,
    );
    return work(client);
  });
}

const fieldsOf = (query: ModelQuery) => query.columns.map((_, index) => `f${index + 1}`);
const from = (query: ModelQuery) => `from (${query.select}) as counted (${fieldsOf(query).join(', ')})`;

/** How many rows the interval has: one row, one column, `rows`. */
export const countQuery = (query: ModelQuery): string => `select count(*) as rows ${from(query)}`;

/** The first `limit` rows: columns `f1`, `f2`, … */
export const previewQuery = (query: ModelQuery, limit: number): string =>
  `select * ${from(query)} limit ${Math.max(0, Math.floor(limit))}`;

export async function countRows(pool: Pool, query: ModelQuery, timeoutMs: number): Promise<number> {
  return inTransaction(pool, query, timeoutMs, async (client) => {
    const { rows } = await client.query(countQuery(query));
    return rows[0].rows;
  });
}

export async function previewRows(
  pool: Pool,
  query: ModelQuery,
  limit: number,
  timeoutMs: number,
): Promise<Preview> {
  return inTransaction(pool, query, timeoutMs, async (client) => {
    const { rows, fields } = await client.query({ text: previewQuery(query, limit), rowMode: 'array' });
    // The driver reads what Postgres calls JSON; other documents come as texts.
    const unread = query.columns.map(
      (one, index) => one.type === 'json' && fields[index]?.dataTypeID === TEXT,
    );
    const shown = (value: unknown, index: number) =>
      unread[index] && typeof value === 'string' ? JSON.parse(value) : value;
    return {
      columns: query.columns.map((one) => one.name),
      rows: rows.map((row: unknown[]) => row.map(shown)),
    };
  });
}

/** How many rows and bytes an interval has: counted and measured within the time, the planner's guess otherwise. */
export async function estimate(pool: Pool, query: ModelQuery, timeoutMs: number): Promise<Estimate> {
  const counted = await unlessTooLong(countRows(pool, query, timeoutMs));
  const rows = counted ?? (await planned(pool, query, timeoutMs)).rows;
  if (rows === 0) return { rows, exact: counted !== undefined, bytes: 0 };
  const measured = await unlessTooLong(bytesOfRow(pool, query, timeoutMs));
  const bytes = measured ?? (await planned(pool, query, timeoutMs)).bytes;
  return { rows, exact: counted !== undefined, bytes: Math.round(rows * bytes) };
}

async function unlessTooLong<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isStatementTimeout(error)) return undefined;
    throw error;
  }
}

async function planned(
  pool: Pool,
  query: ModelQuery,
  timeoutMs: number,
): Promise<{ rows: number; bytes: number }> {
  return inTransaction(pool, query, timeoutMs, async (client) => {
    const { rows } = await client.query(`explain (format json) ${query.select}`);
    const { 'Plan Rows': count, 'Plan Width': width } = rows[0]['QUERY PLAN'][0].Plan;
    return { rows: count, bytes: width };
  });
}

/** Of the first rows on average: the values, their names, and what JSON puts around them. */
async function bytesOfRow(pool: Pool, query: ModelQuery, timeoutMs: number): Promise<number> {
  const fields = fieldsOf(query);
  const names = query.columns.reduce((sum, one) => sum + Buffer.byteLength(one.name) + 6, 2);
  const sizes = fields.map((field) => `coalesce(octet_length(${field}::text), 4)`).join(' + ');
  return inTransaction(pool, query, timeoutMs, async (client) => {
    const { rows } = await client.query(
      `select avg(${sizes})::float8 as bytes from (${previewQuery(query, SAMPLE_ROWS)}) as sample`,
    );
    return names + (rows[0].bytes ?? 0);
  });
}
