import { copyOut } from '../../db/copy-out.ts';
import type { Pool } from '../../db/pool.ts';
import type { BoundFiles, BoundRows } from '../../destinations/bind.ts';
import type { Run } from '../../destinations/destination.ts';
import type { RunTotals } from '../../exports/rows/runs.ts';
import { encodeRows } from '../../formats/encode-rows.ts';
import type { ModelQuery } from '../../models/index.ts';
import type { Attempt } from './attempt.ts';
import { ofSource } from './failures.ts';
import { describeRejected } from './rejected-rows.ts';

export interface Transferred {
  totals: RunTotals & { records_completed: number; records_failed: number; bytes_exported: number };
  /** The first rows that were left out, and why. */
  rejections: string[];
}

/** So many rows that were left out are named. */
const MOST_NAMED = 20;

interface Transfer {
  copyPool: Pool;
  query: ModelQuery;
  destination: BoundFiles | BoundRows;
  run: Run;
  attempt: Attempt;
}

/** Carries the rows of an interval to their destination. Done again it leaves the same there. */
export function transfer(work: Transfer): Promise<Transferred> {
  const { destination } = work;
  return destination.kind === 'files' ? toFiles(work, destination) : toRows(work, destination);
}

/** The rows from the beginning, over a connection of its own. */
async function* rowsOf({ copyPool, query, attempt }: Transfer): AsyncGenerator<Buffer> {
  const rows = copyOut(copyPool, query.text, { settings: query.settings, signal: attempt.signal });
  try {
    for await (const chunk of rows) {
      attempt.moved();
      yield chunk;
    }
  } catch (error) {
    throw ofSource(error);
  }
}

async function toFiles(work: Transfer, destination: BoundFiles): Promise<Transferred> {
  const { run, query, attempt } = work;
  const { signal, fence, onProgress } = attempt;
  const opened = await destination.open(run, { signal, fence, onProgress });
  const rejections: string[] = [];
  try {
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
  const { signal, fence, onProgress } = attempt;
  const delivered = await destination.deliver({
    run,
    columns: query.columns,
    read: () => rowsOf(work),
    signal,
    fence,
    onProgress,
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
