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

/** Parses the file in the place of the manifest. Refuses any other file, so that it is not overwritten. */
function parseManifest(bytes: Buffer, place: string): Manifest {
  let json: unknown;
  try {
    json = JSON.parse(bytes.toString('utf8'));
  } catch {
    json = undefined;
  }
  const parsed = manifestSchema.safeParse(json);
  if (!parsed.success) {
    throw new DestinationError(
      'occupied',
      `${place} is there already and is no manifest of Sluice. Give this export another prefix, or remove that file.`,
    );
  }
  return parsed.data;
}

/** Refuses to overwrite the files of another export. */
function requireOwn(manifest: Manifest | undefined, exportId: string, place: string): void {
  if (manifest === undefined || manifest.export_id === exportId) return;
  throw new DestinationError(
    'occupied',
    `${place} belongs to the export ${manifest.export_id}: two exports write to the same place. Give this one another prefix.`,
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

async function readManifest(
  store: FileStore,
  keys: Pick<ObjectKeys, 'manifest'>,
  signal?: AbortSignal,
): Promise<{ seen: StoredBytes | undefined; manifest: Manifest | undefined }> {
  const seen = await store.get(keys.manifest, signal);
  return { seen, manifest: seen && parseManifest(seen.bytes, store.describe(keys.manifest)) };
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
    const found = await readManifest(store, keys, work.signal);
    requireOwn(found.manifest, run.exportId, store.describe(keys.manifest));
    await fence();
    await store.sweep(keys);
    return found;
  })().catch(async (error) => {
    await store.close();
    throw error;
  });

  async function writeManifest(manifest: Manifest): Promise<void> {
    const bytes = manifestBytes(manifest);
    if (await store.put(keys.manifest, bytes, before.seen)) return;
    // A manifest was written since this run began: by this run, if the answer got lost, or by another one.
    const { seen, manifest: other } = await readManifest(store, keys);
    if (seen?.bytes.equals(bytes)) return;
    requireOwn(other, run.exportId, store.describe(keys.manifest));
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
      for (const { index } of encoded) {
        const file = files.get(index);
        if (!file) throw new Error(`file ${index} was never opened`);
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
  const keys = manifestKey === null ? keysOf(destination.options(config), run) : keysAt(manifestKey);
  const store = await destination.store(config, surroundings, { onWait, hasFlowed: true });
  try {
    const { manifest } = await readManifest(store, keys);
    if (!manifest) return false;
    requireOwn(manifest, run.exportId, store.describe(keys.manifest));
    await fence();
    for (const { key } of manifest.files) if (keys.owns(key)) await store.remove(key);
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
  signal?: AbortSignal,
): Promise<Verification> {
  const keys = keysOf(destination.options(config), run);
  const store = await destination.store(config, surroundings);
  try {
    const { manifest } = await readManifest(store, keys);
    requireOwn(manifest, run.exportId, store.describe(keys.manifest));
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
