import { chmod, lstat, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';

const OTHERS = 0o077;

/**
 * Takes the rights of others on the directory of all `File` exports, and on the files and directories in it that older
 * versions left readable. What belongs to another user is left alone. The root comes last, so that an interrupted walk is
 * repeated by the next start; a root that is closed already is not walked. Returns how many changed.
 */
export async function closeExportRoot(root: string): Promise<number> {
  const real = await realpath(root).catch(() => undefined);
  if (real === undefined) return 0;
  const found = await lstat(real);
  if (!found.isDirectory() || (isOurs(found) && (found.mode & OTHERS) === 0)) return 0;
  return (await closeBelow(real)) + (await close(real));
}

const isOurs = ({ uid }: { uid: number }) => uid === process.getuid?.();

async function closeBelow(directory: string): Promise<number> {
  let changed = 0;
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const place = path.join(directory, entry.name);
    if (entry.isDirectory()) changed += (await closeBelow(place)) + (await close(place));
    else if (entry.isFile()) changed += await close(place);
  }
  return changed;
}

async function close(place: string): Promise<number> {
  // A run may rename a file or remove one meanwhile.
  const found = await lstat(place).catch(() => undefined);
  if (!found || found.isSymbolicLink() || !isOurs(found) || (found.mode & OTHERS) === 0) return 0;
  await chmod(place, found.mode & 0o7777 & ~OTHERS).catch(() => undefined);
  return 1;
}
