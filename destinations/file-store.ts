import type { FileSink } from '../formats/file-sink.ts';
import type { Manifest } from './manifest.ts';
import type { ObjectKeys } from './object-keys.ts';

/** A file that nobody sees until it is published. `abort` leaves nothing of it, also after `close`. */
export interface HiddenFile extends FileSink {
  /** After `close`: makes it visible under its key, in the place of what was there. */
  publish(): Promise<void>;
}

export interface StoredBytes {
  bytes: Buffer;
  /** Which version this is; given back to `put`, so that nothing is written over that was not seen. */
  version: string;
}

export interface Digest {
  bytes: number;
  sha256: string;
}

/** A place that keeps files under keys: what S3 and a directory have in common. Errors are DestinationErrors. */
export interface FileStore {
  /** The key with its place, for messages. */
  describe(key: string): string;
  /** Removes what killed attempts left half-written for these keys. */
  sweep(keys: ObjectKeys): Promise<void>;
  open(key: string, labels: Record<string, string>, signal?: AbortSignal): Promise<HiddenFile>;
  /** A small file as a whole; undefined if there is none. */
  get(key: string, signal?: AbortSignal): Promise<StoredBytes | undefined>;
  /** Writes a small file at once, if what is there is still `seen`; false if it is something else by now. */
  put(key: string, bytes: Buffer, seen: StoredBytes | undefined): Promise<boolean>;
  remove(key: string): Promise<void>;
  /** Reads a whole file; undefined if there is none. */
  digest(key: string, signal?: AbortSignal): Promise<Digest | undefined>;
  close(): void | Promise<void>;
}

export interface FileState {
  key: string;
  state: 'same' | 'missing' | 'different';
  expected: Digest;
  found: Digest | null;
}

/** What is at the destination, compared with what the manifest says. */
export interface Verification {
  manifest: Manifest | null;
  files: FileState[];
}
