import { copyOut } from '../../db/copy-out.ts';
import type { Pool } from '../../db/pool.ts';
import { type BoundFiles, type BoundRows, bindDestination } from '../../destinations/bind.ts';
import type { Run, RunControl } from '../../destinations/destination.ts';
import type { Column } from '../../formats/columns.ts';
import type { RejectedRow } from '../../formats/copy-input.ts';
import { encodeRows } from '../../formats/encode-rows.ts';
import { type IntervalText, readInterval } from '../../intervals/index.ts';
import { type ModelQuery, rulesOf, WHOLE_QUERY } from '../../models/index.ts';
import { openSettings, type StoredSettings } from '../reads/settings.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import type { RunTotals } from '../rows/runs.ts';
import type { RunDependencies } from './dependencies.ts';
import { ofSource } from './source.ts';
import type { WaitingAttempt } from './waiting.ts';

/** Returns the destination of an export, with its secrets decrypted. */
export function boundDestination(
  {
    egress,
    exportRoot,
    patience,
    limits,
    keyring,
  }: Pick<RunDependencies, 'egress' | 'exportRoot' | 'patience' | 'limits' | 'keyring'>,
  row: StoredSettings & Pick<BatchExportRow, 'id' | 'folder'>,
): BoundFiles | BoundRows {
  return bindDestination(openSettings(keyring, row), {
    egress,
    exportRoot,
    folder: row.folder,
    ...(patience ? { patience } : {}),
    ...(limits ? { limits } : {}),
  });
}

/** Describes a run for its destination. */
export function destinationRun(row: BatchExportRow, runId: string, interval: IntervalText): Run {
  return {
    exportId: row.id,
    runId,
    projectId: row.project_id,
    model: row.model,
    interval: readInterval(interval),
  };
}

export interface Transferred {
  totals: RunTotals & { records_completed: number; records_failed: number; bytes_exported: number };
  /** The first rows that were left out, and why. */
  rejections: string[];
}

/** How many rows that were left out are named in the log. */
const MOST_NAMED = 20;

/** The trace of an attempt: it tells others what the attempt may leave at the destination. */
export interface Trace extends Required<Pick<RunControl, 'wrote' | 'mayName' | 'onPublish'>> {
  /** Is called before anything is written. */
  begin(manifestKey: string): Promise<void>;
}

interface Transfer {
  copyPool: Pool;
  query: ModelQuery;
  destination: BoundFiles | BoundRows;
  run: Run;
  attempt: WaitingAttempt;
  trace: Trace;
}

/** Brings the rows of an interval to their destination. Repeating it leaves the same result there. */
export function transfer(work: Transfer): Promise<Transferred> {
  const { destination } = work;
  return destination.kind === 'files' ? toFiles(work, destination) : toRows(work, destination);
}

/** Reads all rows, over a connection of its own. */
async function* rowsOf({ copyPool, query, attempt }: Transfer): AsyncGenerator<Buffer> {
  const rows = copyOut(copyPool, query.text, { settings: query.settings, signal: attempt.signal });
  const hasRows = query.model === WHOLE_QUERY ? computing(attempt) : () => undefined;
  try {
    for await (const chunk of rows) {
      hasRows();
      attempt.moved();
      yield chunk;
    }
  } catch (error) {
    throw ofSource(error);
  } finally {
    hasRows();
  }
}

/** Often enough that a run that computes never counts as standing. */
const ALIVE = 1_000;

/**
 * Says that a query computes, until the returned function is called. It may do so for long before its first row. Its own
 * limit of time ends it.
 */
function computing({ onWait, stillWaits }: WaitingAttempt): () => void {
  const over = onWait('the first rows of the query');
  const alive = setInterval(stillWaits, ALIVE);
  return () => {
    clearInterval(alive);
    over();
  };
}

async function toFiles(work: Transfer, destination: BoundFiles): Promise<Transferred> {
  const { run, query, attempt, trace } = work;
  const { signal, fence, onProgress, onWait } = attempt;
  const opened = await destination.open(run, { signal, fence, onProgress, onWait, ...trace });
  const rejections: string[] = [];
  try {
    await trace.begin(opened.keys.manifest);
    const { format, compression, maxFileBytes } = opened.options;
    const encoded = await encodeRows(rowsOf(work), {
      columns: query.columns,
      format,
      compression,
      maxFileBytes,
      openFile: (index) => opened.openFile(index),
      onProgress,
      onReject: (rejected) => {
        if (rejections.length < MOST_NAMED) rejections.push(describeRejected(query.columns, rejected));
      },
      freeChunks: true,
      signal,
    });
    attempt.moved();
    const manifest = await opened.finish(encoded);
    return {
      totals: {
        records_completed: encoded.rows,
        records_total_count: encoded.rows + encoded.rejected,
        records_failed: encoded.rejected,
        bytes_exported: manifest.bytes,
        content_hash: encoded.hash,
        manifest_key: opened.keys.manifest,
      },
      rejections,
    };
  } catch (error) {
    await opened.abort();
    throw error;
  } finally {
    await opened.close();
  }
}

async function toRows(work: Transfer, destination: BoundRows): Promise<Transferred> {
  const { run, query, attempt } = work;
  const { signal, fence, onProgress, onWait } = attempt;
  const delivered = await destination.deliver({
    run,
    columns: query.columns,
    rules: rulesOf(query.model).table,
    read: () => rowsOf(work),
    signal,
    fence,
    onProgress,
    onWait,
  });
  return {
    totals: {
      records_completed: delivered.rows - delivered.rejected,
      records_total_count: delivered.rows,
      records_failed: delivered.rejected,
      bytes_exported: delivered.bytes,
    },
    rejections: delivered.rejections.slice(0, MOST_NAMED).map(({ key, reason }) => `${key}: ${reason}`),
  };
}

/** The columns that identify rows. The first of them that a query has is the one. */
const KEYS = ['uuid', 'session_id', 'distinct_id'];

/** Finds a field of a row in COPY's binary form. Null: the field is null, or is not there. */
function fieldOf(bytes: Buffer, index: number): Buffer | null {
  let at = 2;
  for (let field = 0; at + 4 <= bytes.length; field += 1) {
    const length = bytes.readInt32BE(at);
    at += 4;
    if (field === index) return length < 0 ? null : bytes.subarray(at, at + length);
    at += Math.max(0, length);
  }
  return null;
}

const uuidText = (bytes: Buffer) =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

/** Tells which row was left out, and why. */
export function describeRejected(
  columns: readonly Column[],
  { row, reason, bytes }: Pick<RejectedRow, 'row' | 'reason' | 'bytes'>,
): string {
  const key = KEYS.find((name) => columns.some((one) => one.name === name));
  const index = columns.findIndex((one) => one.name === key);
  const value = index < 0 ? null : fieldOf(bytes, index);
  if (value === null) return `row ${row + 1}: ${reason}`;
  const shown = columns[index]?.type === 'uuid' ? uuidText(value) : value.toString('utf8').slice(0, 200);
  return `${key} ${shown}: ${reason}`;
}
