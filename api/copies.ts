import { createHash } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises';
import path from 'node:path';
import type { Logger } from '../telemetry/logger.ts';
import { Quiet } from '../telemetry/quiet.ts';

/** Changes with the form of what is kept. A copy in another form is ignored. */
const FORM = 'sluice-copy 2';
/** Milliseconds from the first change to its writing. A copy is not written more often than this. */
const WRITE_AFTER = 2_000;
const MOST_BYTES = 512 * 1024 * 1024;
const MOST_OF_ONE = 64 * 1024 * 1024;
const MOST_COPIES = 50_000;
/** What a process left unfinished for so long, nobody finishes any more. */
const ABANDONED_AFTER = 600_000;
/** The last line: a checksum in hex, and a line feed. */
const SUM_BYTES = 65;
/** How many milliseconds lines are joined in one turn of the event loop. */
const TURN = 4;

export interface CopiesOptions {
  directory: string;
  logger: Pick<Logger, 'warn' | 'info'>;
  writeAfter?: number;
  mostBytes?: number;
}

/**
 * Last known answers of the database, on disk, for a process that starts while the database is away. Each copy is a file
 * of its own, so that processes can share the directory, and so that a damaged file costs one copy.
 */
export interface Copies {
  /** Has a copy written soon. `lines` are asked for when that happens; a line has no line feed in it. */
  save(kind: string, name: string, lines: () => Iterable<string>): void;
  remove(kind: string, name: string): void;
  /** The lines of a copy. Undefined: there is none, or it cannot be used. */
  read(kind: string, name: string): Promise<string[] | undefined>;
  has(kind: string, name: string): boolean;
  /** How many copies of a kind there are. */
  count(kind: string): number;
  /** Writes what is to be written. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

const headOf = (key: string) => `${FORM} ${key}`;

/** Opens the copies below a directory. If it cannot be used, the log says so, and there are none. */
export async function openCopies(options: CopiesOptions): Promise<Copies> {
  const { directory, logger, writeAfter = WRITE_AFTER, mostBytes = MOST_BYTES } = options;
  /** The bytes of each copy by its path below the directory, in the order in which they were written. */
  const sizes = new Map<string, number>();
  const toWrite = new Map<string, (() => Iterable<string>) | null>();
  /** The checksum of each copy that this process wrote. */
  const written = new Map<string, string>();
  const quiet = new Quiet();
  let total = 0;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let isClosed = false;

  const tell = (err: unknown) =>
    quiet.tell((untold) =>
      logger.warn(
        { err, directory, untold },
        'what flags need cannot be copied to disk; a restart without the database will not have it',
      ),
    );

  function note(key: string, bytes: number | undefined): void {
    total += (bytes ?? 0) - (sizes.get(key) ?? 0);
    sizes.delete(key);
    written.delete(key);
    if (bytes !== undefined) sizes.set(key, bytes);
  }

  async function makeRoom(): Promise<void> {
    for (const oldest of sizes.keys()) {
      if (total <= mostBytes && sizes.size <= MOST_COPIES) return;
      note(oldest, undefined);
      await unlink(path.join(directory, oldest)).catch(() => undefined);
    }
  }

  async function textOf(key: string, lines: Iterable<string>): Promise<Buffer | undefined> {
    const parts: Buffer[] = [];
    const hash = createHash('sha256');
    const add = (line: string) => {
      const part = Buffer.from(`${line}\n`);
      hash.update(part);
      parts.push(part);
    };
    add(headOf(key));
    let bytes = 0;
    let turn = performance.now();
    for (const line of lines) {
      add(line);
      bytes += line.length;
      if (bytes > MOST_OF_ONE) return undefined;
      if (performance.now() - turn > TURN) {
        await new Promise((resolve) => setImmediate(resolve));
        turn = performance.now();
      }
    }
    return Buffer.concat([...parts, Buffer.from(`${hash.digest('hex')}\n`)]);
  }

  /** The file of this name is the old copy or the new one at any time, whatever ends the process or the machine. */
  async function write(key: string, content: Buffer): Promise<void> {
    const file = path.join(directory, key);
    const unfinished = `${file}.${process.pid}.tmp`;
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    const handle = await open(unfinished, 'w', 0o600);
    try {
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(unfinished, file);
    note(key, content.length);
  }

  async function writeAll(): Promise<void> {
    for (const [key, lines] of toWrite) {
      toWrite.delete(key);
      try {
        const content = lines ? await textOf(key, lines()) : undefined;
        if (content) {
          const sum = sumIn(content);
          if (written.get(key) === sum) continue;
          await write(key, content);
          written.set(key, sum);
        } else {
          note(key, undefined);
          await unlink(path.join(directory, key)).catch((error) => {
            if (error.code !== 'ENOENT') throw error;
          });
        }
        await makeRoom();
      } catch (error) {
        tell(error);
      }
    }
  }

  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    writing = writing.then(writeAll);
    return writing;
  }

  function plan(kind: string, name: string, lines: (() => Iterable<string>) | null): void {
    if (isClosed) return;
    toWrite.set(`${kind}/${name}`, lines);
    timer ??= setTimeout(() => void flush(), writeAfter).unref();
  }

  const has = (kind: string, name: string): boolean =>
    sizes.has(`${kind}/${name}`) || Boolean(toWrite.get(`${kind}/${name}`));

  /** Finds the copies that earlier processes left. */
  async function look(): Promise<void> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const found: { key: string; bytes: number; at: number }[] = [];
    for (const kind of await readdir(directory, { withFileTypes: true })) {
      if (!kind.isDirectory()) continue;
      for (const name of await readdir(path.join(directory, kind.name))) {
        const key = `${kind.name}/${name}`;
        const about = await stat(path.join(directory, key)).catch(() => undefined);
        if (!about?.isFile()) continue;
        if (!name.endsWith('.tmp')) found.push({ key, bytes: about.size, at: about.mtimeMs });
        else if (Date.now() - about.mtimeMs > ABANDONED_AFTER) {
          await unlink(path.join(directory, key)).catch(() => undefined);
        }
      }
    }
    for (const { key, bytes } of found.sort((left, right) => left.at - right.at)) note(key, bytes);
    await makeRoom();
  }

  await look().catch(tell);
  return {
    save: plan,
    remove: (kind, name) => has(kind, name) && plan(kind, name, null),
    has,
    async read(kind, name) {
      const key = `${kind}/${name}`;
      const file = path.join(directory, key);
      let content: Buffer;
      try {
        content = await readFile(file);
      } catch (error) {
        if ((error as { code?: string }).code !== 'ENOENT') tell(error);
        return undefined;
      }
      const lines = linesOf(content, key);
      if (!lines) logger.warn({ file }, 'a copy on disk is damaged, or of another version; it is ignored');
      return lines;
    },
    count(kind) {
      let count = 0;
      for (const key of sizes.keys()) if (key.startsWith(`${kind}/`)) count += 1;
      return count;
    },
    flush,
    async close() {
      isClosed = true;
      await flush();
    },
  };
}

const sumIn = (content: Buffer): string =>
  content
    .subarray(content.length - SUM_BYTES)
    .toString()
    .trimEnd();

/** The lines of a file, if it is whole and in the form of today. */
function linesOf(content: Buffer, key: string): string[] | undefined {
  if (content.length <= SUM_BYTES) return undefined;
  const body = content.subarray(0, content.length - SUM_BYTES);
  if (createHash('sha256').update(body).digest('hex') !== sumIn(content)) return undefined;
  const [head, ...lines] = body.toString().trimEnd().split('\n');
  return head === headOf(key) ? lines : undefined;
}
