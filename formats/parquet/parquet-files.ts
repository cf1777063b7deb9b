import type { Column } from '../columns.ts';
import type { OutputFile, OutputFiles } from '../output-files.ts';
import type { Chunk } from './column-pages.ts';
import { type ChunkPlace, fileFooter, fileHeader, type GroupPlace } from './file-footer.ts';

/** So much is handed to a sink at once, if it comes in smaller pieces. */
const PIECE = 256 * 1024;

/** Row groups, whose pages are compressed already, into files. */
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

  async end(): Promise<void> {
    const file = this.#files.current;
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
