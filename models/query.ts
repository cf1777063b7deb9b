import type { Pool, Transaction } from '../db/pool.ts';
import { isStatementTimeout, type ReadBounds, readOnly } from '../db/reading.ts';
import type { ModelQuery } from './model-query.ts';

/**
 * The first rows of an interval as the export would send them, up to a limit of bytes. Values have the form of JSON.
 */
export interface Preview {
  columns: string[];
  rows: unknown[][];
}

export interface Estimate {
  rows: number;
  /** True if the rows were counted, false if Postgres's planner guessed their number. */
  exact: boolean;
  /** The approximate size of the rows as JSON lines, without compression. */
  bytes: number;
}

/** How long a query may take. */
export type QueryBounds = Omit<ReadBounds, 'settings'>;

const SAMPLE_ROWS = 1_000;
/**
 * A preview takes this much and no more, because a query can produce a row that is larger than this process's memory.
 */
const SHOWN_BYTES = 8 * 1024 * 1024;
/** Postgres's OID of the type text. */
const TEXT = 25;

const inTransaction = <T>(
  pool: Pool,
  { settings }: ModelQuery,
  bounds: QueryBounds,
  work: (client: Transaction) => Promise<T>,
): Promise<T> => readOnly(pool, { ...bounds, settings }, work);

const fieldsOf = (query: ModelQuery) => query.columns.map((_, index) => `f${index + 1}`);
const bytesOf = (query: ModelQuery) =>
  fieldsOf(query)
    .map((field) => `coalesce(octet_length(${field}::text), 4)`)
    .join(' + ');
const from = (query: ModelQuery) => `from (${query.select}) as counted (${fieldsOf(query).join(', ')})`;

/** Returns the statement that counts the rows of an interval: one row with one column, `rows`. */
export const countQuery = (query: ModelQuery): string => `select count(*) as rows ${from(query)}`;

/** Returns the statement that selects the first `limit` rows, with columns `f1`, `f2`, … */
export const previewQuery = (query: ModelQuery, limit: number): string =>
  `select * ${from(query)} limit ${Math.max(0, Math.floor(limit))}`;

/**
 * Returns the statement that selects the first `limit` rows until they exceed the limit of bytes. Its last column is
 * the size of the rows so far. A value that is too large becomes null at once, because Postgres keeps the rows whose
 * sizes it adds up.
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

export async function countRows(pool: Pool, query: ModelQuery, bounds: QueryBounds): Promise<number> {
  return inTransaction(pool, query, bounds, async (client) => {
    const { rows } = await client.query(countQuery(query));
    return rows[0].rows;
  });
}

export async function previewRows(
  pool: Pool,
  query: ModelQuery,
  limit: number,
  bounds: QueryBounds,
): Promise<Preview> {
  return inTransaction(pool, query, bounds, async (client) => {
    const { rows, fields } = await client.query({ text: shownQuery(query, limit), rowMode: 'array' });
    // The driver parses columns of the type json. Here, JSON in columns of the type text is parsed as well.
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

/**
 * Estimates the rows and bytes of an interval. It counts and measures if the time allows, and otherwise asks the
 * planner.
 */
export async function estimate(pool: Pool, query: ModelQuery, bounds: QueryBounds): Promise<Estimate> {
  const counted = await unlessTooLong(countRows(pool, query, bounds));
  const rows = counted ?? (await planned(pool, query, bounds)).rows;
  if (rows === 0) return { rows, exact: counted !== undefined, bytes: 0 };
  const measured = await unlessTooLong(bytesOfRow(pool, query, bounds));
  const bytes = measured ?? (await planned(pool, query, bounds)).bytes;
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
  bounds: QueryBounds,
): Promise<{ rows: number; bytes: number }> {
  return inTransaction(pool, query, bounds, async (client) => {
    const { rows } = await client.query(`explain (format json) ${query.select}`);
    const { 'Plan Rows': count, 'Plan Width': width } = rows[0]['QUERY PLAN'][0].Plan;
    return { rows: count, bytes: width };
  });
}

const PLAN_MILLISECONDS = 3_000;

/** Lets Postgres plan the statement, so that Postgres refuses an invalid one now. */
export async function planQuery(pool: Pool, query: ModelQuery, signal?: AbortSignal): Promise<void> {
  await inTransaction(pool, query, { timeoutMs: PLAN_MILLISECONDS, signal }, (client) =>
    client.query(`explain ${query.select}`),
  );
}

/** Returns the average size of the first rows: their values, their names, and what JSON puts around them. */
async function bytesOfRow(pool: Pool, query: ModelQuery, bounds: QueryBounds): Promise<number> {
  const names = query.columns.reduce((sum, one) => sum + Buffer.byteLength(one.name) + 6, 2);
  return inTransaction(pool, query, bounds, async (client) => {
    const { rows } = await client.query(
      `select avg(${bytesOf(query)})::float8 as bytes from (${previewQuery(query, SAMPLE_ROWS)}) as sample`,
    );
    return names + (rows[0].bytes ?? 0);
  });
}
