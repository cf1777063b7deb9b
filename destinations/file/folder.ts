import { constants } from 'node:fs';
import { lstat, mkdir, open, realpath } from 'node:fs/promises';
import path from 'node:path';
import { DestinationError, type DestinationErrorCode } from '../errors.ts';

const CODES: Record<string, [DestinationErrorCode, string]> = {
  ENOSPC: ['no-space', 'no space is left on the disk'],
  EDQUOT: ['no-space', 'the disk quota is used up'],
  EFBIG: ['no-space', 'the file is larger than the system allows; set max_file_size_mb'],
  EMFILE: ['unavailable', 'too many files are open'],
  ENFILE: ['unavailable', 'too many files are open'],
  EIO: ['unavailable', 'the disk reports an error'],
  ESTALE: ['unavailable', 'the file system is not available'],
  EROFS: ['denied', 'the file system is read-only'],
  EACCES: ['denied', 'Sluice has no right to write there'],
  EPERM: ['denied', 'Sluice has no right to write there'],
  EISDIR: ['occupied', 'there is a directory of that name'],
  ENOTDIR: ['occupied', 'there is a file where a directory has to be'],
  ELOOP: ['denied', 'there is a symbolic link'],
  ENAMETOOLONG: ['rejected', 'the name is too long for the file system'],
  ENOENT: ['overtaken', 'somebody removed it while it was being written'],
};

/** Turns an error of the file system into a DestinationError. */
export function fileError(error: unknown, place: string): DestinationError {
  if (error instanceof DestinationError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const [kind, text] = CODES[code] ?? ['unexpected' as const, (error as Error).message];
  return new DestinationError(kind, `${place}: ${text}`, { cause: error });
}

export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

/** Limits in bytes. File systems take paths of 4,096; the root and the name of the file need some of them. */
const LONGEST_SEGMENT = 255;
const LONGEST_DIRECTORY = 2048;

/** Why the directory of a configuration cannot be used. Undefined if it can. */
export function directoryProblem(directory: string): string | undefined {
  if (directory.trim() === '') return "The following inputs are empty: ['directory']";
  if (path.isAbsolute(directory)) return 'directory must be relative: it lies below SLUICE_EXPORT_ROOT';
  if (directory.split('/').some((segment) => segment === '..'))
    return "directory must not have the segment '..'";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  if (/[\u0000-\u001f\u007f\\]/.test(directory) || !directory.isWellFormed())
    return 'directory must not have control characters, backslashes or halves of characters';
  if (Buffer.byteLength(directory) > LONGEST_DIRECTORY)
    return `directory is longer than ${LONGEST_DIRECTORY} bytes`;
  if (directory.split('/').some((segment) => Buffer.byteLength(segment) > LONGEST_SEGMENT))
    return `directory has a segment that is longer than ${LONGEST_SEGMENT} bytes`;
  return undefined;
}

/** A directory below the export root. It resolves each step of a path, so that no symbolic link leads out. */
export class Folder {
  readonly #root: string;
  readonly #directory: string;

  constructor(root: string, directory: string) {
    this.#root = path.resolve(root);
    this.#directory = directory;
  }

  describe(key: string): string {
    return `File ${JSON.stringify(path.posix.join(this.#directory, key))}`;
  }

  /** The path of a key's file. With `make`, missing directories are created first. */
  async locate(key: string, make: boolean): Promise<string> {
    try {
      if (make) await mkdir(this.#root, { recursive: true });
      const root = await realpath(this.#root);
      const segments = path.posix.join(this.#directory, key).split('/');
      let at = root;
      for (const segment of segments.slice(0, -1)) {
        const next = path.join(at, segment);
        // One by one, so that nothing is created below a directory that leads out of the root.
        if (make && (await this.#isAbsent(next))) await makeDirectory(next, at);
        at = await realpath(next);
        if (at !== root && !at.startsWith(`${root}${path.sep}`)) {
          throw new DestinationError(
            'denied',
            `${this.describe(key)}: ${JSON.stringify(segment)} is a symbolic link that leads out of SLUICE_EXPORT_ROOT`,
          );
        }
      }
      return path.join(at, segments.at(-1) as string);
    } catch (error) {
      if (!make && isMissing(error)) throw error;
      throw fileError(error, this.describe(key));
    }
  }

  async #isAbsent(name: string): Promise<boolean> {
    return lstat(name).then(
      () => false,
      (error) => {
        if (isMissing(error)) return true;
        throw error;
      },
    );
  }
}

async function makeDirectory(name: string, parent: string): Promise<void> {
  await mkdir(name).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await syncDirectory(parent);
}

/** Syncs a directory, so that the names in it survive a power failure. */
export async function syncDirectory(name: string): Promise<void> {
  const handle = await open(name, constants.O_RDONLY);
  try {
    await handle.sync();
  } catch (error) {
    // Some file systems cannot do this, and need not.
    if (!['EINVAL', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  } finally {
    await handle.close();
  }
}
