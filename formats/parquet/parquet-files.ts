import { freeMemory } from '../buffer-pool.ts';
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

  constructor(files: OutputFiles, columns: readonly Column[], codec: number) {
    this.#files = files;
    this.#columns = columns;
    this.#codec = codec;
  }

  async write(rows: number, chunks: readonly Chunk[]): Promise<void> {
    const file = this.#files.current ?? (await this.#begin());
    const places: ChunkPlace[] = [];
    for (const chunk of chunks) places.push(await this.#writeChunk(file, chunk));
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
    const start = file.bytes;
    const dictionary = await chunk.dictionary;
    const dataOffset = start + (dictionary ? dictionary.header.length + dictionary.body.length : 0);
    let uncompressedBytes = 0;
    let waiting: Buffer[] = [];
    let bodies: Buffer[] = [];
    let size = 0;
    const flush = async () => {
      const whole = Buffer.concat(waiting, size);
      for (const body of bodies) freeMemory(body);
      waiting = [];
      bodies = [];
      size = 0;
      await file.write(whole);
    };
    for (const promise of dictionary ? [dictionary, ...chunk.pages] : chunk.pages) {
      const page = await promise;
      waiting.push(page.header, page.body);
      bodies.push(page.body);
      size += page.header.length + page.body.length;
      uncompressedBytes += page.uncompressedBytes;
      if (size >= PIECE) await flush();
    }
    await flush();
    return {
      values,
      nulls,
      encodings,
      bounds,
      dataOffset,
      dictionaryOffset: dictionary ? start : undefined,
      bytes: file.bytes - start,
      uncompressedBytes,
    };
  }
}
