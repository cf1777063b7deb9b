import { copyOut } from '../../db/copy-out.ts';
import type { Pool } from '../../db/pool.ts';
import { ofProject } from '../../db/roles/project-setting.ts';
import type { Asker } from '../../db/turns.ts';
import { encodeArrow } from '../../formats/arrow/encode-arrow.ts';
import { type EncodeOptions, encodeRows } from '../../formats/encode-rows.ts';
import { type CompiledFile, QueryError } from '../rules/request.ts';
import { LONGEST_RESULT_ROW, type ResultFormat } from '../rules/result-file.ts';

export interface EncodeResultOptions {
  format: ResultFormat;
  /** Postgres ends the query after this time, in which waiting for the reader counts. */
  timeoutMs: number;
  /** Takes the bytes in order. When it is done, their memory is used again. */
  write(bytes: Buffer): Promise<void>;
}

const ENCODINGS: Readonly<
  Record<Exclude<ResultFormat, 'arrow'>, Pick<EncodeOptions, 'format' | 'compression'>>
> = {
  csv: { format: 'CSV', compression: null },
  jsonl: { format: 'JSONLines', compression: null },
  // Every reader of Parquet knows it.
  parquet: { format: 'Parquet', compression: 'snappy' },
};

/**
 * Runs a compiled query as the role that sees the rows of one project only, and writes all its rows as one file. Nothing is written
 * before the first rows are there, or the end. The use of memory does not depend on the number of rows.
 */
export async function encodeResult(
  pool: Pool,
  { projectId, signal }: Asker,
  { text, columns }: CompiledFile,
  { format, timeoutMs, write }: EncodeResultOptions,
): Promise<void> {
  const rows = copyOut(pool, text, {
    settings: {
      // Nobody waits for a query whose reader is gone.
      client_connection_check_interval: '1s',
      ...ofProject(projectId),
    },
    timeoutMs,
    longestRow: LONGEST_RESULT_ROW,
    ...(signal && { signal }),
  });
  if (format === 'arrow') return encodeArrow(rows, { columns, write, signal });
  await encodeRows(rows, {
    ...ENCODINGS[format],
    columns,
    evenEmpty: true,
    openFile: async () => ({ write, close: async () => undefined, abort: async () => undefined }),
    onReject: ({ column }) => {
      throw new QueryError('query', `A value of '${column}' is a list of lists, which no file can hold.`);
    },
    freeChunks: true,
    signal,
  });
}
