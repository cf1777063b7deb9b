import { z } from 'zod';
import type { EncodedFile, FileSink } from '../formats/output-files.ts';
import type { OpenInterval } from '../intervals/index.ts';
import type {
  Digest,
  FileStore,
  FilesDestination,
  HiddenFile,
  Run,
  RunControl,
  StoredBytes,
  Surroundings,
} from './destination.ts';
import { DestinationError } from './errors.ts';
import type { FileOptions } from './file-options.ts';
import { isoText, keysAt, type ObjectKeys, objectKeys } from './object-keys.ts';

const count = z.number().int().nonnegative();

const manifestSchema = z.object({
  version: z.literal(1),
  export_id: z.string().min(1),
  run_id: z.string(),
  model: z.string(),
  interval: z.object({ start: z.string().nullable(), end: z.string() }),
  format: z.string(),
  compression: z.string().nullable(),
  rows: count,
  bytes: count,
  /** The hash of all rows, independent of their order. */
  hash: z.string(),
  files: z.array(z.object({ key: z.string(), rows: count, bytes: count, sha256: z.string() })),
});

/** What an interval consists of at the destination. Written last: a file that no manifest names is not exported. */
export type Manifest = z.output<typeof manifestSchema>;

/** Writes an interval as manifests do. */
function manifestInterval(interval: OpenInterval): Manifest['interval'] {
  return { start: interval.start === null ? null : isoText(interval.start), end: isoText(interval.end) };
}

function manifestBytes(manifest: Manifest): Buffer {
  return Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
}

/** What the file in the place of a manifest says. Nothing in it may be what Sluice wrote. */
interface ReadManifest {
  manifest?: Manifest;
  /** The export that it names, even if the rest cannot be read. */
  exportId?: string;
}

function readManifest(bytes: Buffer): ReadManifest {
  let json: unknown;
  try {
    json = JSON.parse(bytes.toString('utf8'));
  } catch {
    return {};
  }
  const manifest = manifestSchema.safeParse(json).data;
  const exportId = manifest?.export_id ?? (json as { export_id?: unknown } | null)?.export_id;
  return { ...(manifest && { manifest }), ...(typeof exportId === 'string' && { exportId }) };
}

interface FoundManifest {
  seen: StoredBytes | undefined;
  manifest: Manifest | undefined;
  /** Whether this export wrote it, but it cannot be read any more. */
  isDamaged: boolean;
}

/**
 * Finds the manifest of an interval. Refuses the files of another export, and any other file that this export did not
 * write, so that they are not overwritten.
 */
async function findManifest(
  store: FileStore,
  keys: Pick<ObjectKeys, 'manifest'>,
  exportId: string,
  { wrote, mayName, signal }: Pick<RunControl, 'wrote' | 'mayName' | 'signal'> = {},
): Promise<FoundManifest> {
  const seen = await store.get(keys.manifest, signal);
  if (!seen) return { seen, manifest: undefined, isDamaged: false };
  const place = store.describe(keys.manifest);
  const found = readManifest(seen.bytes);
  if (found.exportId !== undefined && found.exportId !== exportId) {
    const other = (await mayName?.(found.exportId)) ? `the export ${found.exportId}` : 'another export';
    throw new DestinationError(
      'occupied',
      `${place} belongs to ${other}: two exports write to the same place. Give this one another prefix.`,
    );
  }
  if (found.manifest) return { seen, manifest: found.manifest, isDamaged: false };
  if (await wrote?.(keys.manifest)) return { seen, manifest: undefined, isDamaged: true };
  throw new DestinationError(
    'occupied',
    `${place} is there already and is no manifest of Sluice. Give this export another prefix, or remove that file.`,
  );
}

export interface FileState {
  key: string;
  state: 'same' | 'missing' | 'different';
  expected: Digest;
  found: Digest | null;
}

/** The files at the destination, compared with the manifest. */
export interface Verification {
  manifest: Manifest | null;
  files: FileState[];
}

/** What the encoder says about the files that it wrote. */
interface Encoded {
  files: readonly EncodedFile[];
  rows: number;
  hash: string;
}

/** A run that writes one interval to files. Until `finish`, nobody can see them at the destination. */
export interface FileRun {
  options: FileOptions;
  keys: ObjectKeys;
  openFile(index: number): Promise<FileSink>;
  /**
   * Makes the files visible and writes the manifest. Then deletes files that an earlier run of the same export wrote
   * and this one did not. A cancellation does not interrupt it.
   */
  finish(encoded: Encoded): Promise<Manifest>;
  /** Removes all files that are not published. Never throws. */
  abort(): Promise<void>;
  close(): Promise<void>;
}

export function keysOf(options: FileOptions, run: Pick<Run, 'model' | 'interval'>): ObjectKeys {
  return objectKeys({ ...options, ...run, numbered: options.maxFileBytes !== undefined });
}

/** Removes the files of an interval from an index on. For files that no readable manifest names. */
async function removeFrom(store: FileStore, keys: ObjectKeys, first: number): Promise<void> {
  for (let index = first; ; index += 1) {
    const key = keys.file(index);
    if ((await store.markOf(key)) === undefined) return;
    await store.remove(key);
  }
}

/** Begins a run. Refuses keys that belong to another export, and removes what killed attempts have left. */
export async function openFileRun<Config>(
  destination: FilesDestination<Config>,
  config: Config,
  surroundings: Surroundings,
  run: Run,
  work: RunControl = {},
): Promise<FileRun> {
  const options = destination.options(config);
  const keys = keysOf(options, run);
  const store = await destination.store(config, surroundings, { onWait: work.onWait });
  const fence = work.fence ?? (async () => undefined);
  const files = new Map<number, HiddenFile>();
  const before = await (async () => {
    work.signal?.throwIfAborted();
    const found = await findManifest(store, keys, run.exportId, work);
    await fence();
    await store.sweep(keys, work.signal);
    return found;
  })().catch(async (error) => {
    await store.close();
    throw error;
  });

  async function writeManifest(manifest: Manifest): Promise<void> {
    const bytes = manifestBytes(manifest);
    if (await store.put(keys.manifest, bytes, before.seen)) return;
    // A manifest was written since this run began: by this run, if the answer got lost, or by another one.
    const { seen, manifest: other } = await findManifest(store, keys, run.exportId, {
      ...work,
      signal: undefined,
    });
    if (seen?.bytes.equals(bytes)) return;
    throw new DestinationError(
      'overtaken',
      `${store.describe(keys.manifest)} was written by the run ${other?.run_id ?? '(removed since)'} while this one was under way`,
    );
  }

  return {
    options,
    keys,
    async openFile(index) {
      const labels = { 'sluice-export': run.exportId, 'sluice-run': run.runId };
      const file = await store.open(keys.file(index), labels, work.signal);
      files.set(index, file);
      return file;
    },
    async finish({ files: encoded, rows, hash }) {
      work.signal?.throwIfAborted();
      const manifest: Manifest = {
        version: 1,
        export_id: run.exportId,
        run_id: run.runId,
        model: run.model,
        interval: manifestInterval(run.interval),
        format: options.format,
        compression: options.compression,
        rows,
        bytes: encoded.reduce((sum, file) => sum + file.bytes, 0),
        hash,
        files: encoded.map((file) => ({
          key: keys.file(file.index),
          rows: file.rows,
          bytes: file.bytes,
          sha256: file.sha256,
        })),
      };
      const hidden = encoded.map(({ index }) => {
        const file = files.get(index);
        if (!file) throw new Error(`file ${index} was never opened`);
        return { index, file };
      });
      await work.onPublish?.(
        Object.fromEntries(hidden.map(({ index, file }) => [keys.file(index), file.mark])),
      );
      for (const { index, file } of hidden) {
        await fence();
        await file.publish();
        files.delete(index);
      }
      await fence();
      await writeManifest(manifest);
      const current = new Set(manifest.files.map((file) => file.key));
      for (const { key } of before.manifest?.files ?? []) {
        // Anybody who can write there can edit a manifest, so only keys of this interval are deleted.
        if (!current.has(key) && keys.owns(key)) await store.remove(key);
      }
      if (before.isDamaged) await removeFrom(store, keys, encoded.length);
      return manifest;
    },
    async abort() {
      await Promise.all([...files.values()].map((file) => file.abort().catch(() => undefined)));
      files.clear();
    },
    async close() {
      await store.close();
    },
  };
}

/** It ends an attempt whose own rows have arrived, so its requests are repeated. */
export interface TakeBack extends Pick<RunControl, 'fence' | 'onWait'> {
  /** Where the manifest was written, if known. The configuration may have changed since. */
  manifestKey?: string | null;
}

/**
 * Removes the files of an interval whose rows another interval now contains. The manifest goes last, so that the
 * removal can be repeated. Resolves with false if there was nothing.
 */
export async function takeBackFiles<Config>(
  destination: FilesDestination<Config>,
  config: Config,
  surroundings: Surroundings,
  run: Run,
  { fence = async () => undefined, onWait, manifestKey = null }: TakeBack = {},
): Promise<boolean> {
  const current = keysOf(destination.options(config), run);
  const keys = manifestKey === null ? current : keysAt(manifestKey);
  const store = await destination.store(config, surroundings, { onWait, hasFlowed: true });
  try {
    const wrote = async () => manifestKey !== null;
    const { seen, manifest, isDamaged } = await findManifest(store, keys, run.exportId, { wrote });
    if (!seen) return false;
    await fence();
    for (const { key } of manifest?.files ?? []) if (keys.owns(key)) await store.remove(key);
    if (isDamaged && current.manifest === manifestKey) await removeFrom(store, current, 0);
    await store.remove(keys.manifest);
    return true;
  } finally {
    await store.close();
  }
}

/** Reads all files at the destination and compares them with the manifest. */
export async function verifyFiles<Config>(
  destination: FilesDestination<Config>,
  config: Config,
  surroundings: Surroundings,
  run: Run,
  { signal, mayName }: Pick<RunControl, 'signal' | 'mayName'> = {},
): Promise<Verification> {
  const keys = keysOf(destination.options(config), run);
  const store = await destination.store(config, surroundings);
  try {
    const { manifest } = await findManifest(store, keys, run.exportId, { mayName, signal });
    const files: Verification['files'] = [];
    for (const { key, bytes, sha256 } of manifest?.files ?? []) {
      const found = keys.owns(key) ? ((await store.digest(key, signal)) ?? null) : null;
      const same = found?.bytes === bytes && found.sha256 === sha256;
      files.push({
        key,
        state: found === null ? 'missing' : same ? 'same' : 'different',
        expected: { bytes, sha256 },
        found,
      });
    }
    return { manifest: manifest ?? null, files };
  } finally {
    await store.close();
  }
}

/** What an attempt may have left that is over and has not completed its run. */
export interface Leavings {
  exportId: string;
  runId: string;
  manifestKey: string;
  /** The marks of the files that it published, by key. Null: it has published nothing. */
  marks: Readonly<Record<string, string>> | null;
  /** Whether its run is known to have ended without completing. Then a manifest of the run does not count. */
  hasEnded: boolean;
  /** The last run that completed the interval. */
  completedRunId: string | null;
}

export interface Cleared {
  /** The keys of what was removed. */
  removed: string[];
  /** Whether the files of the completed run are not what its manifest says, because of this attempt. */
  hasDamaged: boolean;
}

/**
 * Removes what an attempt has left: uploads that nobody completes, and files that bear its marks and that no manifest
 * names. If there is nothing else of the interval, also a manifest of its run, with the files. Call it only while no
 * attempt writes to this interval.
 */
export async function clearFiles<Config>(
  destination: FilesDestination<Config>,
  config: Config,
  surroundings: Surroundings,
  { exportId, runId, manifestKey, marks, hasEnded, completedRunId }: Leavings,
  { signal, fence = async () => undefined }: Pick<RunControl, 'signal' | 'fence'> = {},
): Promise<Cleared> {
  const keys = keysAt(manifestKey);
  const store = await destination.store(config, surroundings);
  const removed: string[] = [];
  try {
    await fence();
    await store.sweep(keys, signal);
    if (marks === null) return { removed, hasDamaged: false };
    const seen = await store.get(keys.manifest, signal);
    const { manifest } = seen ? readManifest(seen.bytes) : {};
    const isOwn = manifest?.export_id === exportId;
    const isVoid = isOwn && hasEnded && manifest.run_id === runId;
    if (isVoid && completedRunId === null) {
      // The manifest goes last, so that the removal can be repeated.
      for (const key of [...manifest.files.map((one) => one.key).filter(keys.owns), keys.manifest]) {
        await fence();
        await store.remove(key);
        removed.push(key);
      }
      return { removed, hasDamaged: false };
    }
    const named = new Map(manifest?.files.map((one) => [one.key, one]));
    let hasReplaced = isVoid;
    for (const [key, mark] of Object.entries(marks)) {
      signal?.throwIfAborted();
      if (!keys.owns(key)) continue;
      const expected = named.get(key);
      if (!expected) {
        await fence();
        if (await store.removeMarked(key, mark, signal)) removed.push(key);
      } else if (!isVoid && (await store.markOf(key, signal)) === mark) {
        const found = await store.digest(key, signal);
        hasReplaced ||= found?.sha256 !== expected.sha256;
      }
    }
    const isIntact = isOwn && manifest.run_id === completedRunId;
    const hasDamaged = hasReplaced || (removed.length > 0 && !isIntact);
    return { removed, hasDamaged: completedRunId !== null && hasDamaged };
  } finally {
    await store.close();
  }
}
