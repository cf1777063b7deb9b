import { createHash } from 'node:crypto';

/** Takes the bytes of one file. Calls come one at a time. After `abort`, nothing of the file may remain. */
export interface FileSink {
  /** When it is done, the memory of the chunk is used again. A sink that needs the bytes longer copies them. */
  write(chunk: Buffer): void | Promise<void>;
  close(): Promise<void>;
  abort(): Promise<void>;
}

/** A closed file. */
export interface EncodedFile {
  index: number;
  rows: number;
  /** The size as written. */
  bytes: number;
  /** The size before compression. */
  uncompressedBytes: number;
  /** The hash of the bytes as written, in hexadecimal. */
  sha256: string;
}

interface OutputOptions {
  openFile(index: number): Promise<FileSink>;
  onProgress?: ((rows: number, bytes: number) => void) | undefined;
}

/** The files of a run. One is open at a time. */
export class OutputFiles {
  readonly files: EncodedFile[] = [];
  /** The totals of all files so far, for `onProgress`. */
  #rows = 0;
  #bytes = 0;
  #open: OutputFile | undefined;
  #stopped = false;
  readonly #options: OutputOptions;

  constructor(options: OutputOptions) {
    this.#options = options;
  }

  get current(): OutputFile | undefined {
    return this.#open;
  }

  /** Whether no file was opened yet. */
  get isUnused(): boolean {
    return this.#open === undefined && this.files.length === 0;
  }

  async open(): Promise<OutputFile> {
    this.#requireRunning();
    const index = this.files.length;
    const sink = await this.#options.openFile(index);
    const file = new OutputFile(sink, index, () => this.#requireRunning());
    this.#open = file;
    // The run may have ended while the file opened.
    if (this.#stopped) await this.#abortOpen();
    this.#requireRunning();
    return file;
  }

  /** Reports that so many further rows are in the current file. */
  progress(rows: number): void {
    const file = this.#open as OutputFile;
    file.rows += rows;
    this.#rows += rows;
    this.#options.onProgress?.(this.#rows, this.#bytes + file.bytes);
  }

  async close(uncompressedBytes: number): Promise<void> {
    const file = this.#open as OutputFile;
    this.#requireRunning();
    await file.close();
    this.#open = undefined;
    this.#bytes += file.bytes;
    const { index, rows, bytes } = file;
    this.files.push({ index, rows, bytes, uncompressedBytes, sha256: file.digest() });
  }

  /** Aborts the open file. Writes that are still under way fail. */
  async abort(): Promise<void> {
    this.#stopped = true;
    await this.#abortOpen();
  }

  async #abortOpen(): Promise<void> {
    const file = this.#open;
    this.#open = undefined;
    await file?.abort();
  }

  #requireRunning(): void {
    if (this.#stopped) throw new Error('The run has ended.');
  }
}

/** A file that is being written. Counts and hashes its bytes. */
export class OutputFile {
  rows = 0;
  bytes = 0;
  readonly #sink: FileSink;
  readonly #index: number;
  readonly #hash = createHash('sha256');
  readonly #requireRunning: () => void;

  constructor(sink: FileSink, index: number, requireRunning: () => void) {
    this.#sink = sink;
    this.#index = index;
    this.#requireRunning = requireRunning;
  }

  get index(): number {
    return this.#index;
  }

  async write(chunk: Buffer): Promise<void> {
    if (chunk.length === 0) return;
    this.#requireRunning();
    this.#hash.update(chunk);
    this.bytes += chunk.length;
    await this.#sink.write(chunk);
  }

  close(): Promise<void> {
    return this.#sink.close();
  }

  abort(): Promise<void> {
    return this.#sink.abort();
  }

  digest(): string {
    return this.#hash.digest('hex');
  }
}
