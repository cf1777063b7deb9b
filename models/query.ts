import { type Pool, type Transaction, transaction } from '../db/pool.ts';
import { isStatementTimeout } from '../db/reading.ts';
import { quoted } from '../db/sql-literal.ts';
import type { ModelQuery } from './model-query.ts';

/** The first rows of an interval, as they would be exported, as far as they fit; values as JSON has them. */
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
/** What a query makes of an event can be larger than this process: a preview takes this much of it and no more. */
const SHOWN_BYTES = 8 * 1024 * 1024;
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
const bytesOf = (query: ModelQuery) =>
  fieldsOf(query)
    .map((field) => `coalesce(octet_length(${field}::text), 4)`)
    .join(' + ');
const from = (query: ModelQuery) => `from (${query.select}) as counted (${fieldsOf(query).join(', ')})`;

/** How many rows the interval has: one row, one column, `rows`. */
export const countQuery = (query: ModelQuery): string => `select count(*) as rows ${from(query)}`;

/** The first `limit` rows: columns `f1`, `f2`, … */
export const previewQuery = (query: ModelQuery, limit: number): string =>
  `select * ${from(query)} limit ${Math.max(0, Math.floor(limit))}`;

/**
 * The same, up to the first row with which they are too large; the last column is how large they are by then. A value
 * that is too large is dropped where it comes about: whoever adds up the rows keeps them.
 */
function shownQuery(query: ModelQuery, limit: number): string {
  const kept = fieldsOf(query).map(
    (field) => `case when size <= ${SHOWN_BYTES} then ${field} end as ${field}`,
  );
  return `select * from (
      select ${kept.join(', ')}, sum(size) over (rows unbounded preceding) as bytes from (
        select *, ${bytesOf(query)} as size from (${previewQuery(query, limit)}) as first offset 0) as measured) as shown
    where bytes <= ${SHOWN_BYTES}`;
}

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
    const { rows, fields } = await client.query({ text: shownQuery(query, limit), rowMode: 'array' });
    // The driver reads what Postgres calls JSON; other documents come as texts.
    const unread = query.columns.map(
      (one, index) => one.type === 'json' && fields[index]?.dataTypeID === TEXT,
    );
    const shown = (value: unknown, index: number) =>
      unread[index] && typeof value === 'string' ? JSON.parse(value) : value;
    return {
      columns: query.columns.map((one) => one.name),
      rows: rows.map((row: unknown[]) => row.slice(0, query.columns.length).map(shown)),
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

const PLAN_MILLISECONDS = 3_000;

/** Has Postgres plan the statement, in the transaction of the caller: what it will not run it says now. */
export async function planQuery(client: Transaction, query: ModelQuery): Promise<void> {
  await client.query(`set local statement_timeout = ${PLAN_MILLISECONDS}`);
  await client.query(`explain ${query.select}`);
  await client.query('set local statement_timeout = 0');
}

/** Of the first rows on average: the values, their names, and what JSON puts around them. */
async function bytesOfRow(pool: Pool, query: ModelQuery, timeoutMs: number): Promise<number> {
  const names = query.columns.reduce((sum, one) => sum + Buffer.byteLength(one.name) + 6, 2);
  return inTransaction(pool, query, timeoutMs, async (client) => {
    const { rows } = await client.query(
      `select avg(${bytesOf(query)})::float8 as bytes from (${previewQuery(query, SAMPLE_ROWS)}) as sample`,
    );
    return names + (rows[0].bytes ?? 0);
  });
}
