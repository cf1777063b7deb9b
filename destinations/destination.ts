import type { z } from 'zod';
import type { Egress } from '../egress/egress.ts';
import type { Column } from '../formats/columns.ts';
import type { FileSink } from '../formats/output-files.ts';
import type { OpenInterval } from '../intervals/index.ts';
import type { ColumnSet, Model, TableRules } from '../models/index.ts';
import type { RawConfig } from './config.ts';
import type { FileOptions } from './file-options.ts';
import type { Limits } from './limits.ts';
import type { PlaceKeys } from './object-keys.ts';
import type { Patience } from './retry.ts';
import type { WriteTarget } from './write-target.ts';

/** What a destination needs from its process. It reads no environment and no settings itself. */
export interface Surroundings {
  egress: Egress;
  /** The directory SLUICE_EXPORT_ROOT, in which `File` destinations write. */
  exportRoot: string;
  /** Whose disk that directory is on, for messages: `the API server`. */
  diskOf?: string | undefined;
  /** The folder below it that the export must not leave. Null: the whole root, for exports from before folders. */
  folder?: string | null;
  /** What an export would write, for tests of the destination. Undefined: it is not known. */
  columns?: (() => Promise<readonly Column[] | undefined>) | undefined;
  /** How often a failed request is repeated in the middle of an attempt. */
  patience?: Patience;
  /** How long the destination is waited for. Tests make it shorter. */
  limits?: Partial<Limits>;
  now?: () => Date;
}

/** One run of an export, over one interval. */
export interface Run {
  exportId: string;
  runId: string;
  projectId: number;
  /** The name of the model. */
  model: string;
  interval: OpenInterval;
}

/** Stops a run, guards it, and hears how far it is. */
export interface RunControl {
  signal?: AbortSignal | undefined;
  /**
   * Throws if this run may no longer write. A destination calls it before each step that others can see, so that an
   * attempt that stalled and wakes up late changes nothing.
   */
  fence?: (() => Promise<void>) | undefined;
  /** Whether a completed run of this export wrote this manifest, for this interval. */
  wrote?: ((manifestKey: string) => Promise<boolean>) | undefined;
  /** Whether those who read the errors of this run may know that export. */
  mayName?: ((exportId: string) => Promise<boolean>) | undefined;
  /**
   * Is called before the first file becomes visible, with the marks of all files by their keys. By them somebody else
   * can remove the files if this run ends before they are complete.
   */
  onPublish?: ((marks: Record<string, string>) => Promise<void>) | undefined;
  onProgress?: ((rows: number, bytes: number) => void) | undefined;
  /** Says what is waited for, as in "Waits for …", until the returned function is called. */
  onWait?: ((what: string) => () => void) | undefined;
}

/** What a destination that takes rows is given. */
export interface Delivery extends RunControl {
  run: Run;
  columns: readonly Column[];
  /** How rows of the model are recognised, and which of two is newer. */
  rules: TableRules;
  /** Reads the bytes of `copy … to stdout (format binary)`. Each call reads from the beginning. */
  read(): AsyncIterable<Buffer>;
}

/** A row that the destination refuses. It was left out, so that the others could go through. */
export interface Rejection {
  /** The key of the row, such as the uuid of an event. */
  key: string;
  reason: string;
}

export interface Delivered {
  /** All rows of the source, including the rejected ones. */
  rows: number;
  /** How many bytes were sent. */
  bytes: number;
  /** Rows that were added or changed. Null if the destination does not say. */
  written: number | null;
  rejected: number;
  /** The first rejected rows. */
  rejections: Rejection[];
}

/** How many rows of an interval there should be, and how many the destination has. */
export interface RowsFound {
  expected: number;
  found: number;
}

export type StepResult = { status: 'Passed' | 'Failed' | 'Skipped'; message: string | null };

/** A message if the step failed, undefined if it passed and there is nothing to say about it. */
export type StepOutcome = string | undefined | { skipped: string } | { passed: string };

/** One step of a connection test. Steps run in order, up to the first that fails. */
interface TestStep<Config> {
  name: string;
  description: string;
  run(config: Config, surroundings: Surroundings, signal?: AbortSignal): Promise<StepOutcome>;
}

interface Common<Config> {
  /** The names of the type in the API. Documentation uses the first. */
  types: readonly [string, ...string[]];
  /** The keys of the configuration. The schema validates, types and documents them, and marks secrets. */
  fields: z.ZodType<Config> & z.ZodObject<Record<string, z.ZodType>>;
  /**
   * Replaces a key that stands for several ones by them, before the configuration is checked and stored. Throws a
   * DestinationConfigError.
   */
  expand?(config: RawConfig): RawConfig;
  /** Tells why it cannot write rows with these columns, undefined if it can. It takes any columns if absent. */
  columnFault?(columns: readonly Column[], model: Pick<Model, 'name' | 'table'>): string | undefined;
  /** Which of the default columns of a model it takes. It takes the models that have such columns. */
  columns: ColumnSet;
  /** Whether a query can choose columns and rows. */
  takesQuery: boolean;
  /** Whether a backfill may have no end: it exports everything up to now. */
  takesOpenEnd: boolean;
  /**
   * What decides where the secrets travel and what protects them on the way, by key of the configuration. It gets the
   * configuration with its defaults. Two configurations with equal values have the same address. Whoever changes it must
   * send the secrets again.
   */
  address(config: RawConfig): Record<string, unknown>;
  steps: readonly TestStep<Config>[];
  /** What docs/exports-destinations.md says of it. `npm run docs` writes it there. */
  docs: {
    /** Why a repeated run leaves one copy. */
    once: string;
    /** Its address, in one line or several. Empty if it has no secrets. */
    address: readonly string[];
  };
}

/** A file that nobody can see until it is published. `abort` removes all of it, even after `close`. */
export interface HiddenFile extends FileSink {
  /** Tells this file from every other one, also when it is published. It is known when the file is closed. */
  readonly mark: string;
  /** Makes the closed file visible under its key and replaces the file that was there. */
  publish(): Promise<void>;
}

/** A larger file cannot be a manifest. `get` shows it as an empty one. */
export const MOST_SMALL_BYTES = 64 * 1024 * 1024;

export interface StoredBytes {
  bytes: Buffer;
  /** The version that was read. Given to `put`, it prevents the overwriting of a version that nobody has read. */
  version: string;
}

export interface Digest {
  bytes: number;
  sha256: string;
}

/** A place that keeps files under keys, such as a bucket or a directory. Its errors are DestinationErrors. */
export interface FileStore {
  /** Names the key and its place, for messages. */
  describe(key: string): string;
  /** Removes unfinished files of these keys that killed attempts have left. */
  sweep(keys: PlaceKeys, signal?: AbortSignal): Promise<void>;
  open(key: string, labels: Record<string, string>, signal?: AbortSignal): Promise<HiddenFile>;
  /** Reads a small file. Undefined if there is none. */
  get(key: string, signal?: AbortSignal): Promise<StoredBytes | undefined>;
  /** Writes a small file in one step if the current version is still `seen`. Otherwise resolves with false. */
  put(key: string, bytes: Buffer, seen: StoredBytes | undefined): Promise<boolean>;
  remove(key: string): Promise<void>;
  /** The mark of the file that is there. Undefined if there is none, null if it has no mark. */
  markOf(key: string, signal?: AbortSignal): Promise<string | null | undefined>;
  /** Removes the file that is there if it bears this mark. Otherwise resolves with false. */
  removeMarked(key: string, mark: string, signal?: AbortSignal): Promise<boolean>;
  /** Reads a whole file and hashes it. Undefined if there is none. */
  digest(key: string, signal?: AbortSignal): Promise<Digest | undefined>;
  close(): void | Promise<void>;
}

/** What a store serves. */
export interface StoreWork extends Pick<RunControl, 'onWait'> {
  /** Whether rows of this attempt have reached the destination already, so that a failed request is repeated. */
  hasFlowed?: boolean;
}

/** A destination that takes files. formats/ encodes the rows. */
export interface FilesDestination<Config> extends Common<Config> {
  kind: 'files';
  options(config: Config): FileOptions;
  /**
   * Where the files of a configuration go, from its keys without the secrets. Two exports must not share it. All
   * spellings of one place give the same value. `folder` is the folder of the export below the export root.
   */
  writesTo(config: RawConfig, folder: string | null): Pick<WriteTarget, 'store' | 'prefix'>;
  store(config: Config, surroundings: Surroundings, work?: StoreWork): FileStore | Promise<FileStore>;
}

/** A destination that takes the rows as they come from Postgres. */
export interface RowsDestination<Config> extends Common<Config> {
  kind: 'rows';
  deliver(config: Config, surroundings: Surroundings, delivery: Delivery): Promise<Delivered>;
  /** Counts how many of the rows are there. Absent if the destination cannot be asked. */
  find?(config: Config, surroundings: Surroundings, delivery: Delivery): Promise<RowsFound>;
}

export type Destination<Config> = FilesDestination<Config> | RowsDestination<Config>;
