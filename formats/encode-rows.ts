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

export interface EncodeOptions {
  columns: readonly Column[];
  format: Format;
  compression: Compression | null;
  /** Of the compression; by default one that is fast. */
  level?: number | undefined;
  /** A file ends before the row group, or the block of at most 1 MB of lines, that would make it larger. */
  maxFileBytes?: number | undefined;
  openFile(index: number): Promise<FileSink>;
  /** How much is in files so far. */
  onProgress?: ((rows: number, bytes: number) => void) | undefined;
  /** Is given what is kept apart. */
  onReject?: ((rejected: RejectedRow) => void) | undefined;
  /**
   * The memory of each chunk belongs to nobody else, and is given back as soon as it was read. Left to the garbage
   * collector, some 60 MB of it wait at any time.
   */
  freeChunks?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

export interface EncodedRows {
  /** None if there were no rows. */
  files: EncodedFile[];
  /** In files. */
  rows: number;
  /**
   * XXH64 of each row as it came, the rejected ones too, summed modulo 2^64, in 16 hexadecimal digits. The same rows
   * have the same in any order.
   */
  hash: string;
  rejected: number;
}

/**
 * Writes the rows of a COPY in binary form to files. If it rejects, no file is left open, and those that were closed
 * are the caller's to remove. Memory stays the same however many rows come.
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
  const over = new AbortController();
  try {
    await (signal ? Promise.race([work, aborted(signal, over.signal)]) : work);
  } catch (error) {
    // Left behind, `work` fails at its next step, or waits for something that nobody awaits any more.
    work.catch(() => undefined);
    encoder.destroy();
    stop(source, iterator);
    // What went wrong first is what is to be known, whatever goes wrong in tidying up.
    await files.abort().catch(() => undefined);
    throw error;
  } finally {
    over.abort();
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
  const { columns, format, compression, maxFileBytes, level } = options;
  if (format === 'Parquet') return new ParquetEncoder({ kernel, files, compression, level, maxFileBytes });
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
    release,
  });
  return new LinesEncoder({ kernel, csv, blocks, maxFileBytes, take: (length) => pool.take(length) });
}

const csvName = (name: string) => (/[",\r\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);

/** Rejects when the first signal is given; after the second one, never. */
function aborted(signal: AbortSignal, over: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true, signal: over });
  });
}

/** Lets go of a source that may be waiting for something that never comes. */
function stop(source: AsyncIterable<Buffer>, iterator: AsyncIterator<Buffer>): void {
  if ('destroy' in source && typeof source.destroy === 'function') source.destroy();
  else void iterator.return?.()?.then(undefined, () => undefined);
}
