import { BufferPool, freeMemory } from './buffer-pool.ts';
import type { Column } from './columns.ts';
import { CopyInput, type RejectedRow, type RowEncoder } from './copy-input.ts';
import { COMPRESSIONS, type Compression, type Format } from './formats.ts';
import { Kernel } from './kernel/kernel.ts';
import { STATUS } from './kernel/layout.ts';
import { BlockFiles } from './lines/block-files.ts';
import { brotli, identity, zstd } from './lines/compressor.ts';
import { LARGEST_BLOCK, LinesEncoder } from './lines/lines-encoder.ts';
import { type EncodedFile, type FileSink, OutputFiles } from './output-files.ts';
import { ParquetEncoder } from './parquet/parquet-encoder.ts';
import { unlessAborted } from './unless-aborted.ts';

export interface EncodeOptions {
  columns: readonly Column[];
  format: Format;
  compression: Compression | null;
  /** The level of the compression. The default is a fast one. */
  level?: number | undefined;
  /**
   * The size limit of a file. It ends before the row group, or the block of at most 1 MB of lines, that would exceed
   * it.
   */
  maxFileBytes?: number | undefined;
  /** Whether there is a file without rows when there are none. Otherwise there is no file then. */
  evenEmpty?: boolean | undefined;
  openFile(index: number): Promise<FileSink>;
  /** Called with the rows and bytes that are in files so far. */
  onProgress?: ((rows: number, bytes: number) => void) | undefined;
  /** Called with each rejected row. */
  onReject?: ((rejected: RejectedRow) => void) | undefined;
  /**
   * Set if nobody else uses the memory of the chunks. It is then freed as soon as a chunk was read. The garbage
   * collector would leave some 60 MB of it waiting.
   */
  freeChunks?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

export interface EncodedRows {
  /** The written files. Empty if there were no rows, unless `evenEmpty`. */
  files: EncodedFile[];
  /** The rows in the files. */
  rows: number;
  /**
   * The XXH64 of each row as it came, including the rejected ones, summed modulo 2^64, in 16 hexadecimal digits. The sum
   * does not depend on the order of the rows.
   */
  hash: string;
  rejected: number;
}

/**
 * Writes the rows of a COPY in binary form to files. If it rejects, no file is left open, and the caller removes those
 * that were closed. The use of memory does not depend on the number of rows.
 */
export async function encodeRows(
  source: AsyncIterable<Buffer>,
  options: EncodeOptions,
): Promise<EncodedRows> {
  const { signal, columns, freeChunks = false } = options;
  requirePossible(options);
  signal?.throwIfAborted();
  const kernel = new Kernel(columns);
  const files = new OutputFiles(options);
  const encoder = createEncoder(kernel, files, options);
  const input = new CopyInput(kernel, options.onReject);
  const iterator = source[Symbol.asyncIterator]();
  const work = pump(iterator, input, encoder, freeChunks);
  try {
    await unlessAborted(work, signal);
  } catch (error) {
    // Nobody waits for `work` any more. It fails at its next step, or never settles.
    encoder.destroy();
    stop(source, iterator);
    // The first error is the one to report, even if tidying up fails too.
    await files.abort().catch(() => undefined);
    throw error;
  }
  const { rows, hashSum } = kernel.run;
  const hash = BigInt.asUintN(64, hashSum.value).toString(16).padStart(16, '0');
  return { files: files.files, rows: rows.value >>> 0, hash, rejected: input.rejected };
}

async function pump(
  iterator: AsyncIterator<Buffer>,
  input: CopyInput,
  encoder: RowEncoder,
  freeChunks: boolean,
): Promise<void> {
  for (;;) {
    const { done, value } = await iterator.next();
    if (done) break;
    for (let offset = 0; offset < value.length; ) {
      offset += input.append(value, offset);
      for (;;) {
        const status = input.advance(encoder.encode);
        if (status === STATUS.more) break;
        await encoder.resolve(status);
      }
    }
    if (freeChunks) freeMemory(value);
  }
  input.finish();
  await encoder.finish();
}

function requirePossible({ columns, format, compression, maxFileBytes }: EncodeOptions): void {
  if (compression !== null && !COMPRESSIONS[format].includes(compression)) {
    const possible = COMPRESSIONS[format].join(', ');
    throw new RangeError(`${format} cannot be compressed with ${compression}, only with ${possible}.`);
  }
  if (columns.length === 0) throw new RangeError('There are no columns to write.');
  const names = new Set(columns.map(({ name }) => name));
  if (names.size < columns.length) throw new RangeError('Two columns have the same name.');
  if (maxFileBytes !== undefined && !(maxFileBytes > 0))
    throw new RangeError(`A file of at most ${maxFileBytes} bytes cannot be written.`);
}

function createEncoder(kernel: Kernel, files: OutputFiles, options: EncodeOptions): RowEncoder {
  const { columns, format, compression, maxFileBytes, level, evenEmpty = false } = options;
  if (format === 'Parquet') {
    return new ParquetEncoder({ kernel, files, compression, level, maxFileBytes, evenEmpty });
  }
  const compressor = () =>
    compression === 'zstd' ? zstd(level) : compression === 'brotli' ? brotli(level) : identity();
  const csv = format === 'CSV';
  const pool = new BufferPool(LARGEST_BLOCK);
  const release = (raw: Buffer) => pool.give(raw);
  const blocks = new BlockFiles({
    files,
    compression: compression === 'gzip' ? { level: level ?? 6 } : { compressor },
    header: Buffer.from(csv ? `${columns.map(({ name }) => csvName(name)).join(',')}\r\n` : ''),
    maxFileBytes,
    evenEmpty,
    release,
  });
  return new LinesEncoder({ kernel, csv, blocks, maxFileBytes, take: (length) => pool.take(length) });
}

const csvName = (name: string) => (/[",\r\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);

/** Stops a source, even if it waits for something that never comes. */
function stop(source: AsyncIterable<Buffer>, iterator: AsyncIterator<Buffer>): void {
  if ('destroy' in source && typeof source.destroy === 'function') source.destroy();
  else void iterator.return?.()?.then(undefined, () => undefined);
}
