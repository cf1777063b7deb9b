import { constants } from 'node:fs';
import { lstat, mkdir, open, realpath, stat } from 'node:fs/promises';
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

/** The directory below the export root that contains a folder for each project. Only Sluice chooses what is in it. */
const PROJECT_FOLDERS = '@projects';

/** The folder of a project, relative to the export root. */
export const projectFolder = (projectId: number): string => `${PROJECT_FOLDERS}/${projectId}`;

/** Whether a name is that of the project folders, also on a file system that does not tell such names apart. */
const isReserved = (name: string) => name.normalize('NFKC').toLowerCase() === PROJECT_FOLDERS;

/** The mode of directories: exported events are for nobody but the user that Sluice runs as. */
const OWNER_ONLY = 0o700;

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
  const first = directory.split('/').find((segment) => segment !== '' && segment !== '.');
  if (first !== undefined && isReserved(first))
    return `directory must not begin with '${PROJECT_FOLDERS}', which is reserved`;
  return undefined;
}

/**
 * A directory that an export writes in. It lies below the folder of a project, or, for exports from before there were
 * such folders, below the export root itself. Each step of a path is resolved, so that no symbolic link leads out of
 * there, and none from the export root into the folders of projects.
 */
export class Folder {
  readonly #root: string;
  readonly #folder: string | null;
  readonly #directory: string;

  constructor(root: string, folder: string | null, directory: string) {
    this.#root = path.resolve(root);
    this.#folder = folder;
    this.#directory = directory;
  }

  describe(key: string): string {
    return `File ${JSON.stringify(path.posix.join(this.#directory, key))}`;
  }

  /** The path of a key's file. With `make`, missing directories are created first. */
  async locate(key: string, make: boolean): Promise<string> {
    try {
      const base = await this.#base(make);
      const segments = this.#segments(key);
      let at = base;
      for (const segment of segments.slice(0, -1)) {
        const next = path.join(at, segment);
        await this.#requireOutside(base, next, key);
        // One by one, so that nothing is created below a directory that leads out.
        if (make && (await isAbsent(next))) await makeDirectory(next, at);
        at = await realpath(next);
        this.#requireWithin(base, at, key, segment);
        await this.#requireOutside(base, at, key);
      }
      return path.join(at, segments.at(-1) as string);
    } catch (error) {
      if (!make && isMissing(error)) throw error;
      throw fileError(error, this.describe(key));
    }
  }

  /**
   * The directory of a key, or else the deepest directory above it that exists. `isBelow` says whether it is the export
   * root or below that. Refuses what `locate` refuses, and creates nothing.
   */
  async deepest(key: string): Promise<{ directory: string; isBelow: boolean }> {
    try {
      const steps = [...(this.#folder?.split('/') ?? []), ...this.#segments(key).slice(0, -1)];
      // The root itself may be missing as well.
      let at = this.#root;
      while (await isAbsent(at)) at = path.dirname(at);
      const isBelow = at === this.#root;
      at = await realpath(at);
      if (isBelow) {
        for (const segment of steps) {
          const next = path.join(at, segment);
          if (await isAbsent(next)) break;
          at = await realpath(next);
        }
        // With the refusals of a run.
        await this.locate(key, false).catch((error) => {
          if (!isMissing(error)) throw error;
        });
      }
      if (!(await stat(at)).isDirectory()) throw Object.assign(new Error(at), { code: 'ENOTDIR' });
      return { directory: at, isBelow };
    } catch (error) {
      throw fileError(error, this.describe(key));
    }
  }

  #segments(key: string): string[] {
    return path.posix.join(this.#directory, key).split('/');
  }

  /** The directory that no path of this export leads out of. */
  async #base(make: boolean): Promise<string> {
    if (make) await mkdir(this.#root, { recursive: true, mode: OWNER_ONLY });
    let base = await realpath(this.#root);
    for (const segment of this.#folder?.split('/') ?? []) {
      const next = path.join(base, segment);
      if (make && (await isAbsent(next))) await makeDirectory(next, base);
      const found = await lstat(next);
      if (found.isSymbolicLink()) throw Object.assign(new Error(next), { code: 'ELOOP' });
      if (!found.isDirectory()) throw Object.assign(new Error(next), { code: 'ENOTDIR' });
      base = next;
    }
    return base;
  }

  #requireWithin(base: string, at: string, key: string, segment: string): void {
    if (at === base || at.startsWith(`${base}${path.sep}`)) return;
    const what = this.#folder === null ? 'SLUICE_EXPORT_ROOT' : 'the folder of its project';
    throw new DestinationError(
      'denied',
      `${this.describe(key)}: ${JSON.stringify(segment)} is a symbolic link that leads out of ${what}`,
    );
  }

  /** Refuses a path from the export root into the folders of projects, by whatever name or link. */
  async #requireOutside(base: string, at: string, key: string): Promise<void> {
    if (this.#folder !== null) return;
    const first = path.relative(base, at).split(path.sep)[0] ?? '';
    const enters =
      isReserved(first) || (await isSame(path.join(base, first), path.join(base, PROJECT_FOLDERS)));
    if (!enters) return;
    throw new DestinationError(
      'denied',
      `${this.describe(key)}: ${JSON.stringify(PROJECT_FOLDERS)} is reserved; choose another directory`,
    );
  }
}

async function isAbsent(name: string): Promise<boolean> {
  return lstat(name).then(
    () => false,
    (error) => {
      if (isMissing(error)) return true;
      throw error;
    },
  );
}

/** Whether two paths lead to one directory. */
async function isSame(one: string, other: string): Promise<boolean> {
  const [left, right] = await Promise.all(
    [one, other].map((name) => stat(name, { bigint: true }).catch(() => undefined)),
  );
  return left !== undefined && left.ino === right?.ino && left.dev === right.dev;
}

async function makeDirectory(name: string, parent: string): Promise<void> {
  await mkdir(name, OWNER_ONLY).catch((error: NodeJS.ErrnoException) => {
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
