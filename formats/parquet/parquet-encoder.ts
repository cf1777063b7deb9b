import { BufferPool } from '../buffer-pool.ts';
import type { RowEncoder } from '../copy-input.ts';
import type { Compression } from '../formats.ts';
import type { Kernel } from '../kernel/kernel.ts';
import { STATUS } from '../kernel/layout.ts';
import type { OutputFiles } from '../output-files.ts';
import { type Chunk, ColumnPages, type RawPage } from './column-pages.ts';
import {
  CODECS,
  type Compress,
  type GroupMemory,
  makePage,
  type Page,
  PageMemory,
  pageCompression,
} from './page.ts';
import { ParquetFiles } from './parquet-files.ts';

const LARGEST_PAGE = 1024 * 1024 - 64;
const SMALLEST_PAGE = 4 * 1024;
/** A row group ends when it reaches one of these: rows, bytes before compression, bytes that wait in memory. */
const GROUP_ROWS = 1_000_000;
const GROUP_RAW_BYTES = 64 * 1024 * 1024;
const GROUP_BYTES = 16 * 1024 * 1024;
/** The size of the memory for a page with its levels. */
const PAGE_MEMORY = LARGEST_PAGE + 256 * 1024;
/** At the end of a row group, the pages of all columns end too. */
const MOST_PAGES = 20;
/** How many bytes may be under compression at the same time. */
const IN_FLIGHT = 4 * 1024 * 1024;

/** The row group that is being filled. */
interface Group {
  /**
   * Bytes of all pages before compression, of the compressed pages before compression, and of the same pages after
   * it.
   */
  raw: number;
  doneRaw: number;
  doneBytes: number;
  pages: Promise<Page>[];
  memory: GroupMemory;
}

interface ParquetEncoderOptions {
  kernel: Kernel;
  files: OutputFiles;
  compression: Compression | null;
  level: number | undefined;
  maxFileBytes: number | undefined;
  /** Whether there is a file without rows when there are none. */
  evenEmpty: boolean;
}

/** Encodes rows in pages, collects the pages in row groups, and the row groups in files. */
export class ParquetEncoder implements RowEncoder {
  readonly encode: (at: number, end: number) => number;
  readonly #kernel: Kernel;
  readonly #columns: ColumnPages[];
  readonly #compress: Compress;
  readonly #files: ParquetFiles;
  readonly #maxFileBytes: number;
  readonly #evenEmpty: boolean;
  /** The size so far of the file for the next row group. */
  #fileBytes = 0;
  #groupStart = 0;
  readonly #memory = new PageMemory();
  #group = this.#emptyGroup();
  /** Pages under compression, oldest first, also those of the previous row group; and their bytes. */
  readonly #compressing = new Set<Promise<Page>>();
  #inFlight = 0;
  readonly #pool = new BufferPool(PAGE_MEMORY, MOST_PAGES);
  /** The write of the previous row group, which may still be under compression. */
  #writing: Promise<void> = Promise.resolve();

  constructor({ kernel, files, compression, level, maxFileBytes, evenEmpty }: ParquetEncoderOptions) {
    this.#kernel = kernel;
    this.#evenEmpty = evenEmpty;
    this.#compress = pageCompression(kernel, compression, level);
    this.#maxFileBytes = maxFileBytes ?? Number.POSITIVE_INFINITY;
    this.#files = new ParquetFiles(files, kernel.columns, CODECS[compression ?? 'none']);
    const { run } = kernel;
    run.preparePages(kernel.allocate(64).at);
    const share = Math.max(SMALLEST_PAGE, Math.floor(this.#maxFileBytes / 8));
    const pageBytes = Math.min(LARGEST_PAGE, share);
    const submit = (page: RawPage) => this.#submit(page);
    const take = (length: number) => this.#pool.take(length);
    this.#columns = kernel.columns.map(
      (_, index) => new ColumnPages(kernel, index, { pageBytes, take, submit }),
    );
    this.encode = (at, end) => run.addRows(at, end, GROUP_ROWS - this.#groupRows);
  }

  async resolve(status: number): Promise<void> {
    const { run } = this.#kernel;
    const column = this.#columns[run.faultColumn.value] as ColumnPages;
    if (status === STATUS.rows) return this.#endGroup();
    if (status === STATUS.dictionary) column.growDictionary(run.needed.value >>> 0);
    else if (status === STATUS.full) column.makeRoom(run.needed.value >>> 0, run.neededLevels.value >>> 0);
    else throw new Error(`The Parquet encoder stopped with ${status}.`);
    while (this.#inFlight > IN_FLIGHT) await this.#compressing.values().next().value;
    if (this.#groupIsFull()) await this.#endGroup();
  }

  async finish(): Promise<void> {
    if (this.#groupRows > 0) await this.#endGroup();
    await this.#writing;
    await this.#files.end({ evenEmpty: this.#evenEmpty });
  }

  destroy(): void {}

  get #groupRows(): number {
    return (this.#kernel.run.rows.value - this.#groupStart) >>> 0;
  }

  #emptyGroup(): Group {
    return { raw: 0, doneRaw: 0, doneBytes: 0, pages: [], memory: this.#memory.begin() };
  }

  #groupIsFull(): boolean {
    if (this.#groupRows === 0) return false;
    const { raw, doneRaw, doneBytes } = this.#group;
    if (raw >= GROUP_RAW_BYTES || doneBytes >= GROUP_BYTES) return true;
    if (this.#maxFileBytes === Number.POSITIVE_INFINITY) return false;
    const ratio = doneRaw > 0 ? doneBytes / doneRaw : 1;
    let open = raw - doneRaw;
    for (const column of this.#columns) open += column.waiting;
    return this.#fileBytes + doneBytes + open * ratio >= this.#maxFileBytes;
  }

  #submit({ raw, values, encoding, kind }: RawPage): Promise<Page> {
    const group = this.#group;
    group.raw += raw.length;
    this.#inFlight += raw.length;
    const page = this.#compress(raw, group.memory).then((body) => {
      this.#compressing.delete(page);
      this.#inFlight -= raw.length;
      group.doneRaw += raw.length;
      group.doneBytes += body.length;
      this.#pool.give(raw);
      return makePage(raw.length, body, { values, encoding, kind });
    });
    page.catch(() => undefined);
    group.pages.push(page);
    this.#compressing.add(page);
    return page;
  }

  async #endGroup(): Promise<void> {
    const rows = this.#groupRows;
    const chunks: Chunk[] = this.#columns.map((column) => column.endChunk());
    const { pages, memory } = this.#group;
    this.#groupStart = this.#kernel.run.rows.value;
    this.#group = this.#emptyGroup();
    await this.#writing;
    const sized = this.#sizeOf(pages);
    this.#writing = sized.then((bytes) => this.#write(rows, chunks, bytes).finally(() => memory.release()));
    this.#writing.catch(() => undefined);
    // The size of the file decides when the next row group ends.
    if (this.#maxFileBytes !== Number.POSITIVE_INFINITY) await sized;
  }

  async #sizeOf(pages: readonly Promise<Page>[]): Promise<number> {
    let bytes = 0;
    for (const page of await Promise.all(pages)) bytes += page.header.length + page.body.length;
    return bytes;
  }

  /** Writes a row group. Ends the previous file before it, or this file after it, if the limit says so. */
  async #write(rows: number, chunks: Chunk[], bytes: number): Promise<void> {
    const first = this.#fileBytes > 0 && this.#fileBytes + bytes > this.#maxFileBytes;
    const last = (first ? 0 : this.#fileBytes) + bytes >= this.#maxFileBytes;
    this.#fileBytes = last ? 0 : first ? bytes : this.#fileBytes + bytes;
    if (first) await this.#files.end();
    await this.#files.write(rows, chunks);
    if (last) await this.#files.end();
  }
}
