import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import { access, type FileHandle, link, lstat, open, readdir, rename, rm, unlink } from 'node:fs/promises';
import path from 'node:path';
import { type FileStore, type HiddenFile, MOST_SMALL_BYTES, type StoredBytes } from '../destination.ts';
import { type Folder, fileError, isMissing, syncDirectory } from './folder.ts';

const TEMPORARY = /^\.(.+)\.[0-9a-f]{12}\.partial$/;
const temporaryName = (file: string) =>
  path.join(path.dirname(file), `.${path.basename(file)}.${randomBytes(6).toString('hex')}.partial`);

/** The mode of files: exported events are for nobody but the user that Sluice runs as. */
const OWNER_ONLY = 0o600;
const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW, O_RDONLY, W_OK, X_OK } = constants;

class HiddenLocalFile implements HiddenFile {
  readonly #handle: FileHandle;
  readonly #temporary: string;
  readonly #place: string;
  readonly #locate: () => Promise<string>;
  readonly #signal: AbortSignal | undefined;
  #open = true;
  mark = '';

  constructor(
    handle: FileHandle,
    temporary: string,
    place: string,
    locate: () => Promise<string>,
    signal: AbortSignal | undefined,
  ) {
    this.#handle = handle;
    this.#temporary = temporary;
    this.#place = place;
    this.#locate = locate;
    this.#signal = signal;
  }

  async write(chunk: Buffer): Promise<void> {
    this.#signal?.throwIfAborted();
    try {
      for (let at = 0; at < chunk.length; ) at += (await this.#handle.write(chunk, at)).bytesWritten;
    } catch (error) {
      throw fileError(error, this.#place);
    }
  }

  async close(): Promise<void> {
    try {
      await this.#handle.sync();
      this.mark = markOf(await this.#handle.stat({ bigint: true }));
      await this.#handle.close();
      this.#open = false;
    } catch (error) {
      throw fileError(error, this.#place);
    }
  }

  async publish(): Promise<void> {
    try {
      // Resolved again, since a directory may have been replaced by a link.
      const file = await this.#locate();
      await rename(this.#temporary, file);
      await syncDirectory(path.dirname(file));
    } catch (error) {
      throw fileError(error, this.#place);
    }
  }

  async abort(): Promise<void> {
    if (this.#open) await this.#handle.close().catch(() => undefined);
    this.#open = false;
    await rm(this.#temporary, { force: true });
  }
}

/** What a file keeps when it is renamed, and no other file has. */
const markOf = ({ ino, mtimeNs, size }: BigIntStats) => `${ino}-${mtimeNs}-${size}`;

/** The version of a small file is a hash of its content, since the times of files prove nothing. */
const versionOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

async function linkOrRename(temporary: string, file: string): Promise<void> {
  try {
    await link(temporary, file);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    // The file system has no hard links, like many network drives.
    if (!['EPERM', 'ENOTSUP', 'ENOSYS', 'EMLINK'].includes(code)) throw error;
    await (await open(file, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, OWNER_ONLY)).close();
    await rename(temporary, file);
  }
}

/**
 * Writes a file to the directory and deletes it again. If the directory does not exist, uses the deepest one above it
 * that does: so a test leaves no directory behind, whatever happens to it.
 */
export async function tryWriting(folder: Folder, signal?: AbortSignal): Promise<void> {
  const name = `.sluice-test-${randomUUID()}`;
  const { directory, isBelow } = await folder.deepest(name);
  const file = path.join(directory, name);
  try {
    signal?.throwIfAborted();
    // The directories above the root are not Sluice's.
    if (!isBelow) return await access(directory, W_OK | X_OK);
    const handle = await open(file, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, OWNER_ONLY);
    try {
      await handle.writeFile('written by the test of a connection\n');
      await handle.sync();
    } finally {
      await handle.close();
      await unlink(file);
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw fileError(error, folder.describe(name));
  }
}

export function localStore(folder: Folder): FileStore {
  async function read(key: string): Promise<FileHandle | undefined> {
    try {
      return await open(await folder.locate(key, false), O_RDONLY | O_NOFOLLOW);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw fileError(error, folder.describe(key));
    }
  }

  async function get(key: string): Promise<StoredBytes | undefined> {
    const handle = await read(key);
    if (!handle) return undefined;
    try {
      // What is larger is not read: it is no small file of Sluice.
      const { size } = await handle.stat();
      const bytes = size > MOST_SMALL_BYTES ? Buffer.alloc(0) : await handle.readFile();
      return { bytes, version: versionOf(bytes) };
    } catch (error) {
      throw fileError(error, folder.describe(key));
    } finally {
      await handle.close();
    }
  }

  async function removeIf(key: string, wanted: (found: BigIntStats) => boolean): Promise<boolean> {
    try {
      const file = await folder.locate(key, false);
      if (!wanted(await lstat(file, { bigint: true }))) return false;
      await unlink(file);
      await syncDirectory(path.dirname(file));
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw fileError(error, folder.describe(key));
    }
  }

  return {
    describe: (key) => folder.describe(key),
    get,

    async sweep(keys) {
      try {
        const directory = path.dirname(await folder.locate(keys.manifest, false));
        const keyFolder = path.posix.dirname(keys.manifest);
        for (const name of await readdir(directory)) {
          const meant = TEMPORARY.exec(name)?.[1];
          const key = meant && path.posix.join(keyFolder === '.' ? '' : keyFolder, meant);
          if (key && (keys.owns(key) || key === keys.manifest))
            await rm(path.join(directory, name), { force: true });
        }
      } catch (error) {
        if (!isMissing(error)) throw fileError(error, folder.describe(keys.stem));
      }
    },

    async open(key, _labels, signal) {
      const place = folder.describe(key);
      const temporary = temporaryName(await folder.locate(key, true));
      try {
        const handle = await open(temporary, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, OWNER_ONLY);
        return new HiddenLocalFile(handle, temporary, place, () => folder.locate(key, false), signal);
      } catch (error) {
        throw fileError(error, place);
      }
    },

    async put(key, bytes, seen) {
      const file = await folder.locate(key, true);
      const temporary = temporaryName(file);
      try {
        const handle = await open(temporary, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, OWNER_ONLY);
        try {
          await handle.writeFile(bytes);
          await handle.sync();
        } finally {
          await handle.close();
        }
        if (seen === undefined) {
          // Unlike a rename, a link fails if the file exists.
          await linkOrRename(temporary, file);
        } else {
          if ((await get(key))?.version !== seen.version) return false;
          await rename(temporary, file);
        }
        await syncDirectory(path.dirname(file));
        return true;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
        throw fileError(error, folder.describe(key));
      } finally {
        await rm(temporary, { force: true }).catch(() => undefined);
      }
    },

    async remove(key) {
      await removeIf(key, () => true);
    },

    async markOf(key) {
      try {
        return markOf(await lstat(await folder.locate(key, false), { bigint: true }));
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw fileError(error, folder.describe(key));
      }
    },

    removeMarked: (key, mark) => removeIf(key, (found) => markOf(found) === mark),

    async digest(key, signal) {
      const handle = await read(key);
      if (!handle) return undefined;
      const hash = createHash('sha256');
      let bytes = 0;
      try {
        for await (const chunk of handle.createReadStream({ highWaterMark: 1024 * 1024, autoClose: false })) {
          signal?.throwIfAborted();
          hash.update(chunk as Buffer);
          bytes += (chunk as Buffer).length;
        }
        return { bytes, sha256: hash.digest('hex') };
      } catch (error) {
        signal?.throwIfAborted();
        throw fileError(error, folder.describe(key));
      } finally {
        await handle.close();
      }
    },

    close: () => undefined,
  };
}
