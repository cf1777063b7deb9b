import { createHash } from 'node:crypto';
import zlib from 'node:zlib';
import { parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import type { Column } from '../../formats/columns.ts';
import { type EncodedRows, type EncodeOptions, encodeRows } from '../../formats/encode-rows.ts';
import type { Compression } from '../../formats/formats.ts';
import { inChunks } from './copy-binary.ts';

export interface Output extends EncodedRows {
  contents: Buffer[];
}

/** Encodes into memory, and checks what is always true of the answer. */
export async function encode(
  source: AsyncIterable<Buffer> | Buffer,
  options: Omit<EncodeOptions, 'openFile'>,
): Promise<Output> {
  const contents: Buffer[][] = [];
  let open = 0;
  const result = await encodeRows(Buffer.isBuffer(source) ? inChunks(source, 65_536) : source, {
    ...options,
    openFile: async (index) => {
      if (open > 0) throw new Error('Two files are open at a time.');
      open += 1;
      const chunks: Buffer[] = [];
      contents[index] = chunks;
      return {
        write: (chunk) => void chunks.push(Buffer.from(chunk)),
        close: async () => {
          open -= 1;
        },
        abort: async () => {
          throw new Error('The file was aborted.');
        },
      };
    },
  });
  const whole = contents.map((chunks) => Buffer.concat(chunks));
  const facts = whole.map((content, index) => ({
    index,
    bytes: content.length,
    sha256: createHash('sha256').update(content).digest('hex'),
  }));
  const told = result.files.map(({ index, bytes, sha256 }) => ({ index, bytes, sha256 }));
  if (open !== 0 || JSON.stringify(facts) !== JSON.stringify(told))
    throw new Error(`The answer tells ${JSON.stringify(told)}, but the files are ${JSON.stringify(facts)}.`);
  if (result.files.reduce((sum, { rows }) => sum + rows, 0) !== result.rows)
    throw new Error('The rows of the files are not those of the run.');
  return { ...result, contents: whole };
}

/** By Node's readers, which stop after the first frame or member: what comes later would be missing. */
export function decompress(content: Buffer, compression: Compression | null): Buffer {
  if (compression === 'zstd') return zlib.zstdDecompressSync(content);
  if (compression === 'gzip') {
    const { buffer, engine } = zlib.gunzipSync(content, { info: true }) as unknown as {
      buffer: Buffer;
      engine: zlib.Gunzip;
    };
    if (engine.bytesWritten !== content.length) throw new Error('There is more than one gzip member.');
    return buffer;
  }
  return compression === 'brotli' ? zlib.brotliDecompressSync(content) : content;
}

const arrayBuffer = (content: Buffer) =>
  content.buffer.slice(content.byteOffset, content.byteOffset + content.length) as ArrayBuffer;

/** The rows of a Parquet file, read by hyparquet; timestamps in microseconds. */
export async function readParquet(content: Buffer, columns: readonly Column[]): Promise<unknown[][]> {
  const parsers = {
    timestampFromMilliseconds: (value: bigint) => value,
    timestampFromMicroseconds: (value: bigint) => value,
    timestampFromNanoseconds: (value: bigint) => value,
    dateFromDays: (value: number) => value,
    stringFromBytes: (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString(),
  };
  const rows = await parquetReadObjects({
    file: arrayBuffer(content),
    compressors,
    parsers: parsers as never,
  });
  return rows.map((row) => columns.map(({ name }) => row[name] ?? null));
}

export const parquetMetadata = (content: Buffer) => parquetMetadataAsync(arrayBuffer(content));

/** The same by their names, with timestamps as JSON lines have them and numbers as numbers. */
export async function readParquetRows(content: Buffer): Promise<Record<string, unknown>[]> {
  const { schema } = await parquetMetadata(content);
  const times = new Set(
    schema.filter((one) => one.converted_type === 'TIMESTAMP_MICROS').map((one) => one.name),
  );
  const columns = schema.slice(1).map(({ name }) => ({ name, type: 'string' as const, nullable: true }));
  const rows = await readParquet(content, columns);
  return rows.map((row) =>
    Object.fromEntries(
      columns.flatMap(({ name }, index): [string, unknown][] => {
        const value = row[index];
        if (name === 'list' || name === 'element') return [];
        if (typeof value !== 'bigint') return [[name, value]];
        return [[name, times.has(name) ? isoMicros(value) : Number(value)]];
      }),
    ),
  );
}

const isoMicros = (value: bigint) =>
  `${new Date(Number(value / 1000n)).toISOString().slice(0, -1)}${String(value % 1000n).padStart(3, '0')}Z`;

/** The type of each column, as the file names it. */
export async function columnsOf(content: Buffer): Promise<Record<string, string>> {
  const { schema } = await parquetMetadata(content);
  return Object.fromEntries(
    schema.slice(1).map((one) => [one.name, (one.converted_type ?? one.type) as string]),
  );
}
