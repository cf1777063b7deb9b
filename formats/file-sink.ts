export interface FileSink {
  write(chunk: Buffer): void | Promise<void>;
  close(): Promise<void>;
  abort(): Promise<void>;
}

export interface EncodedFile {
  index: number;
  rows: number;
  bytes: number;
  uncompressedBytes: number;
  sha256: string;
}
