import type { z } from 'zod';
import type { Egress } from '../egress/egress.ts';
import type { Column } from '../formats/columns.ts';
import type { FileSink } from '../formats/output-files.ts';
import type { FileOptions } from './file-options.ts';
import type { Interval, ObjectKeys } from './object-keys.ts';
import type { Patience } from './retry.ts';

export type ModelName = 'events' | 'persons' | 'sessions';

/** What a destination works with; it reads no environment and no settings. */
export interface Surroundings {
  egress: Egress;
  /** SLUICE_EXPORT_ROOT. */
  exportRoot: string;
  /** How long requests are repeated before the run is. */
  patience?: Patience;
  /** A connection on which nothing moves for so long is given up. */
  idleMilliseconds?: number;
  now?: () => Date;
}

/** One run of an export over one interval. */
export interface Run {
  exportId: string;
  runId: string;
  projectId: number;
  model: ModelName;
  interval: Interval;
}

export interface Work {
  signal?: AbortSignal | undefined;
  /**
   * Throws if this run is no longer the one that may write. Asked before each step that others can see, so that an
   * attempt that stalled and wakes up late changes nothing.
   */
  fence?: (() => Promise<void>) | undefined;
  onProgress?: ((rows: number, bytes: number) => void) | undefined;
}

/** Rows for a destination that takes rows. */
export interface Delivery extends Work {
  run: Run;
  columns: readonly Column[];
  /** The bytes of `copy … to stdout (format binary)`. Each call begins anew, also after one that was left unread. */
  read(): AsyncIterable<Buffer>;
}

/** A row that the destination cannot take: it was left out, so that the others are not held up. */
export interface Rejection {
  /** The row's key, such as an event's uuid. */
  key: string;
  reason: string;
}

export interface Delivered {
  /** Rows that the source gave, rejected ones among them. */
  rows: number;
  /** Bytes sent. */
  bytes: number;
  /** Rows that were not there before, or that were changed; null where the destination does not tell. */
  written: number | null;
  rejected: number;
  /** The first of the rejected rows. */
  rejections: Rejection[];
}

/** What a destination that takes rows holds of an interval. */
export interface RowsFound {
  expected: number;
  found: number;
}

export type StepResult = { status: 'Passed' | 'Failed' | 'Skipped'; message: string | null };

/** A message if a step failed, nothing if it passed. */
export type StepOutcome = string | undefined | { skipped: string };

/** One step of the test of a connection. Steps are run in order, to the first that fails. */
interface TestStep<Config> {
  name: string;
  description: string;
  run(config: Config, surroundings: Surroundings, signal?: AbortSignal): Promise<StepOutcome>;
}

interface Common<Config> {
  /** How the API calls it; the first name is the one it is known by. */
  types: readonly [string, ...string[]];
  /** The keys of its configuration: validates, types, documents and marks secrets. */
  fields: z.ZodType<Config> & z.ZodObject<Record<string, z.ZodType>>;
  /** The models it takes; all of them by default. */
  models?: readonly ModelName[];
  steps: readonly TestStep<Config>[];
  /** What else must not stand in a message, beside the secrets of the configuration. */
  secretsOf?(config: Config): string[];
}

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

/** It is given files: formats/ encodes the rows. */
export interface FilesDestination<Config> extends Common<Config> {
  kind: 'files';
  options(config: Config): FileOptions;
  store(config: Config, surroundings: Surroundings): FileStore | Promise<FileStore>;
}

/** It is given the rows as they come from Postgres. */
export interface RowsDestination<Config> extends Common<Config> {
  kind: 'rows';
  deliver(config: Config, surroundings: Surroundings, delivery: Delivery): Promise<Delivered>;
  /** How many of the rows are there; absent where a destination cannot be asked. */
  find?(config: Config, surroundings: Surroundings, delivery: Delivery): Promise<RowsFound>;
}

export type Destination<Config> = FilesDestination<Config> | RowsDestination<Config>;
