import { createHash } from 'node:crypto';

/** Where the bytes of one file go. One call at a time is made; after `abort` nothing of the file may remain. */
export interface FileSink {
  /** When it is done, the chunk's memory is used for something else: who needs it longer copies it. */
  write(chunk: Buffer): void | Promise<void>;
  close(): Promise<void>;
  abort(): Promise<void>;
}

/** A file that was closed. */
export interface EncodedFile {
  index: number;
  rows: number;
  /** As written. */
  bytes: number;
  /** Before compression. */
  uncompressedBytes: number;
  /** Of the bytes as written, in hexadecimal. */
  sha256: string;
}

interface OutputOptions {
  openFile(index: number): Promise<FileSink>;
  onProgress?: ((rows: number, bytes: number) => void) | undefined;
}

/** The files of a run, one open at a time. */
export class OutputFiles {
  readonly files: EncodedFile[] = [];
  /** Of all files so far, for `onProgress`. */
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

  async open(): Promise<OutputFile> {
    this.#requireRunning();
    const index = this.files.length;
    const sink = await this.#options.openFile(index);
    const file = new OutputFile(sink, index, () => this.#requireRunning());
    this.#open = file;
    // The run may have ended while the file was being opened.
    if (this.#stopped) await this.#abortOpen();
    this.#requireRunning();
    return file;
  }

  /** Says that rows are in the current file, with everything written to it so far. */
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

  /** Gives up the file that is open. Whatever is still on its way to it fails. */
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

/** A file being written: counts and hashes what goes into it. */
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
