import { chmodSync, lstatSync, readdirSync } from 'node:fs';
import path from 'node:path';

/** For the owner: everything. */
export const OWNER_ONLY = 0o700;
/** Others may go through a directory whose content they know by name, and see nothing of it. */
const PASSABLE = 0o711;
const OTHERS = 0o077;
/** The directories that no other account uses. */
const OURS = new Set(['exports', 'logs', 'processes', 'temporal']);

/**
 * Takes the rights of others on the data directory and on what Sluice keeps in it, as older versions left them. What
 * belongs to another user is left alone. `passable`: Postgres runs as another account, whose cluster is in the directory.
 */
export function closeDataDir(dataDir: string, passable = false): void {
  for (const entry of readdirSync(dataDir, { withFileTypes: true })) {
    if (entry.isFile() || OURS.has(entry.name)) close(path.join(dataDir, entry.name), OTHERS);
  }
  close(dataDir, passable ? OTHERS & ~PASSABLE : OTHERS);
}

function close(place: string, rights: number): void {
  const found = lstatSync(place, { throwIfNoEntry: false });
  if (!found || found.isSymbolicLink() || found.uid !== process.getuid?.()) return;
  const mode = found.mode & 0o7777;
  if ((mode & rights) !== 0) chmodSync(place, mode & ~rights);
}
