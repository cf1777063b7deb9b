// The rows that a run reads: when they are final, when they are deleted, and how they are counted and hashed.
import { setTimeout as pause } from 'node:timers/promises';
import { copyOut } from '../../db/copy-out.ts';
import { partitionOf } from '../../db/event-partitions.ts';
import { closeHorizon, readHorizon } from '../../db/horizon.ts';
import type { Pool } from '../../db/pool.ts';
import { isStatementTimeout } from '../../db/reading.ts';
import { encodeRows } from '../../formats/encode-rows.ts';
import type { IntervalText } from '../../intervals/index.ts';
import { type ModelQuery, refusesQuery, rulesOf } from '../../models/index.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import type { Attempt } from './attempt.ts';

/**
 * How long each try to close the horizon may hold up writers, in milliseconds. The first tries are short, because all
 * requests that store events wait meanwhile.
 */
const SHORTEST_LOCK = 50;
const LONGEST_LOCK = 2_000;
/** The pause between two tries, in milliseconds. Another worker may close the horizon meanwhile. */
const BETWEEN = 100;

/** Waits until no more rows can be stored with a time before `end`, which is in milliseconds since 1970. */
export async function untilFinal(
  pool: Pool,
  end: number,
  attempt: Pick<Attempt, 'signal' | 'moved'>,
): Promise<void> {
  const passed = (closed: string | undefined) => closed !== undefined && Date.parse(closed) >= end;
  for (let lock = SHORTEST_LOCK; ; lock = Math.min(lock * 2, LONGEST_LOCK)) {
    attempt.signal.throwIfAborted();
    if (passed(await readHorizon(pool)) || passed(await closeHorizon(pool, lock))) return;
    attempt.moved();
    await pause(BETWEEN, undefined, { signal: attempt.signal }).catch(() => attempt.signal.throwIfAborted());
  }
}

const DAY = 86_400_000;
/** The rows must not be deleted between this check and the end of reading them. */
const MARGIN = 10 * 60_000;

/** The rows of an interval are deleted, or about to be. */
export class ExpiredRowsError extends Error {
  override readonly name = 'ExpiredRowsError';
}

/**
 * Refuses to export an interval if some of its rows may be deleted. The remaining rows would replace an earlier export
 * that had all rows. A run without a beginning exports the rows that there are.
 */
export function requireUnexpired(
  row: Pick<BatchExportRow, 'model'>,
  interval: IntervalText,
  retentionDays: number | undefined,
  now: number,
): void {
  if (interval.start === null || !isExpired(row, interval, retentionDays, now + MARGIN)) return;
  throw new ExpiredRowsError(
    `Events of this interval are past SLUICE_EVENT_RETENTION_DAYS (${retentionDays}), so it cannot be exported any more. What was exported of it before stays as it is.`,
  );
}

/** Answers whether events of the interval may be deleted because of their age. They are deleted by whole weeks. */
export function isExpired(
  { model }: Pick<BatchExportRow, 'model'>,
  { start }: IntervalText,
  retentionDays: number | undefined,
  now: number,
): boolean {
  if (retentionDays === undefined || !rulesOf(model).expires) return false;
  if (start === null) return true;
  return partitionOf(new Date(start)).to.getTime() <= now - retentionDays * DAY;
}

/** The members of a cohort that an export names will never be known. */
export class CohortGoneError extends Error {
  override readonly name = 'CohortGoneError';
}

/** Postgres refuses the query that the settings of an export make. */
export class QueryRefusedError extends Error {
  override readonly name = 'QueryRefusedError';
}

/** Only whole queries have a limit of time. Another message with this SQLSTATE says that somebody cancelled them. */
const isTooSlow = (error: unknown) =>
  isStatementTimeout(error) && /statement timeout/.test((error as Error).message);

/**
 * Translates an error that occurred while reading the rows of an export. If Postgres refused the query, the settings of
 * the export are at fault. Use it for no other statement, because a refusal of those is a bug of Sluice.
 */
export function ofSource(error: unknown): unknown {
  if (isTooSlow(error)) {
    return new QueryRefusedError(
      'The query takes longer than SLUICE_EXPORT_QUERY_SECONDS allows. Choose a shorter range of time, or add conditions.',
    );
  }
  if (!refusesQuery(error)) return error;
  return new QueryRefusedError(
    `Postgres refuses the query that the filters and columns of this export make: ${(error as Error).message}`,
  );
}

/** A file that drops what is written. The rows are encoded only for their checksum. */
const NOWHERE = {
  write() {},
  async close() {},
  async abort() {},
};

/** Counts the rows of a query and computes their checksum, which is the same in every order and every format. */
export async function hashRows(
  pool: Pool,
  query: ModelQuery,
  signal: AbortSignal,
): Promise<{ rows: number; hash: string }> {
  const source = copyOut(pool, query.text, { settings: query.settings, signal });
  const { rows, rejected, hash } = await encodeRows(source, {
    columns: query.columns,
    format: 'JSONLines',
    compression: null,
    openFile: async () => NOWHERE,
    freeChunks: true,
    signal,
  });
  return { rows: rows + rejected, hash };
}
