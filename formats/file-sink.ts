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
