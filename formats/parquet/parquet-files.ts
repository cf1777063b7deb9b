import type { Column } from '../columns.ts';
import type { OutputFile, OutputFiles } from '../output-files.ts';
import type { Chunk } from './column-pages.ts';
import { pathOf, physicalType, writeSchema } from './schema.ts';
import type { Bounds } from './statistics.ts';
import { ThriftWriter } from './thrift.ts';

interface ChunkPlace {
  values: number;
  nulls: number;
  encodings: number[];
  bounds: Bounds | undefined;
  /** Where the first page with values begins, and where the dictionary does. */
  dataOffset: number;
  dictionaryOffset: number | undefined;
  bytes: number;
  uncompressedBytes: number;
}

interface GroupPlace {
  rows: number;
  chunks: ChunkPlace[];
}

const MAGIC = Buffer.from('PAR1');
const CREATED_BY = 'Sluice version 1 (build 1)';

const fileHeader = (): Buffer => MAGIC;

/** The end of a file. It says where everything in the file is. */
function fileFooter(columns: readonly Column[], groups: readonly GroupPlace[], codec: number): Buffer {
  const thrift = new ThriftWriter();
  thrift.i32(1, 2);
  writeSchema(thrift, 2, columns);
  thrift.i64(
    3,
    groups.reduce((sum, { rows }) => sum + rows, 0),
  );
  thrift.structs(4, groups, (group) => writeGroup(thrift, group, columns, codec));
  thrift.binary(6, CREATED_BY);
  // Says that bounds follow the order of their type. Without it, readers must not use them.
  thrift.structs(7, columns, () => thrift.struct(1, () => undefined));
  const metadata = thrift.finish();
  const length = Buffer.alloc(4);
  length.writeUInt32LE(metadata.length);
  return Buffer.concat([metadata, length, MAGIC]);
}

function writeGroup(
  thrift: ThriftWriter,
  { rows, chunks }: GroupPlace,
  columns: readonly Column[],
  codec: number,
): void {
  const total = (key: 'bytes' | 'uncompressedBytes') => chunks.reduce((sum, chunk) => sum + chunk[key], 0);
  const first = chunks[0] as ChunkPlace;
  thrift.structs(1, chunks, (chunk) => {
    const column = columns[chunks.indexOf(chunk)] as Column;
    thrift.i64(2, 0);
    thrift.struct(3, () => writeChunk(thrift, chunk, column, codec));
  });
  thrift.i64(2, total('uncompressedBytes'));
  thrift.i64(3, rows);
  thrift.i64(5, first.dictionaryOffset ?? first.dataOffset);
  thrift.i64(6, total('bytes'));
}

function writeChunk(thrift: ThriftWriter, chunk: ChunkPlace, column: Column, codec: number): void {
  thrift.i32(1, physicalType(column.type));
  thrift.i32s(2, chunk.encodings);
  thrift.strings(3, pathOf(column));
  thrift.i32(4, codec);
  thrift.i64(5, chunk.values);
  thrift.i64(6, chunk.uncompressedBytes);
  thrift.i64(7, chunk.bytes);
  thrift.i64(9, chunk.dataOffset);
  if (chunk.dictionaryOffset !== undefined) thrift.i64(11, chunk.dictionaryOffset);
  thrift.struct(12, () => {
    thrift.i64(3, chunk.nulls);
    const { bounds } = chunk;
    if (!bounds) return;
    if (bounds.greatest) thrift.binary(5, bounds.greatest);
    thrift.binary(6, bounds.least);
    if (bounds.greatest) thrift.bool(7, bounds.greatestExact);
    thrift.bool(8, bounds.leastExact);
  });
}

/** Smaller pieces are collected to this size before they go to the sink. */
const PIECE = 256 * 1024;

/** Writes row groups, whose pages are already compressed, into files. */
export class ParquetFiles {
  readonly #files: OutputFiles;
  readonly #columns: readonly Column[];
  readonly #codec: number;
  #groups: GroupPlace[] = [];
  readonly #piece = Buffer.allocUnsafeSlow(PIECE);
  #used = 0;

  constructor(files: OutputFiles, columns: readonly Column[], codec: number) {
    this.#files = files;
    this.#columns = columns;
    this.#codec = codec;
  }

  async write(rows: number, chunks: readonly Chunk[]): Promise<void> {
    const file = this.#files.current ?? (await this.#begin());
    const places: ChunkPlace[] = [];
    for (const chunk of chunks) places.push(await this.#writeChunk(file, chunk));
    await this.#flush(file);
    this.#groups.push({ rows, chunks: places });
    this.#files.progress(rows);
  }

  /** Ends the current file. With `evenEmpty`, makes one without rows if there was none. */
  async end({ evenEmpty = false }: { evenEmpty?: boolean } = {}): Promise<void> {
    const file = this.#files.current ?? (evenEmpty && this.#files.isUnused ? await this.#begin() : undefined);
    if (!file) return;
    await file.write(fileFooter(this.#columns, this.#groups, this.#codec));
    let raw = 0;
    for (const { chunks } of this.#groups) for (const chunk of chunks) raw += chunk.uncompressedBytes;
    await this.#files.close(raw);
    this.#groups = [];
  }

  async #begin(): Promise<OutputFile> {
    const file = await this.#files.open();
    await file.write(fileHeader());
    return file;
  }

  async #writeChunk(file: OutputFile, chunk: Chunk): Promise<ChunkPlace> {
    const { values, nulls, encodings, bounds } = chunk;
    const start = file.bytes + this.#used;
    const dictionary = await chunk.dictionary;
    const dataOffset = start + (dictionary ? dictionary.header.length + dictionary.body.length : 0);
    let uncompressedBytes = 0;
    for (const promise of dictionary ? [dictionary, ...chunk.pages] : chunk.pages) {
      const { header, body, uncompressedBytes: size } = await promise;
      await this.#append(file, header);
      await this.#append(file, body);
      uncompressedBytes += size;
    }
    return {
      values,
      nulls,
      encodings,
      bounds,
      dataOffset,
      dictionaryOffset: dictionary ? start : undefined,
      bytes: file.bytes + this.#used - start,
      uncompressedBytes,
    };
  }

  async #append(file: OutputFile, bytes: Buffer): Promise<void> {
    if (this.#used + bytes.length > PIECE) await this.#flush(file);
    if (bytes.length > PIECE) return file.write(bytes);
    this.#used += bytes.copy(this.#piece, this.#used);
  }

  async #flush(file: OutputFile): Promise<void> {
    if (this.#used === 0) return;
    await file.write(this.#piece.subarray(0, this.#used));
    this.#used = 0;
  }
}
