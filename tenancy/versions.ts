import { type Pool, type Transaction, transaction } from '../db/pool.ts';
import {
  deleteVersions,
  type OldVersion,
  oldVersions,
  projectsWithVersions,
  type VersionBounds,
  type VersionTables,
} from '../db/versions.ts';
import type { Work } from './product.ts';

/** Versions that are looked for at once, and the bytes of those that one transaction deletes. */
const AT_ONCE = 5_000;
const BYTES_AT_ONCE = 32 * 1024 * 1024;

/** Cuts a list into parts that one transaction each deletes. A part has one row at least. */
export function* parts<Row extends { bytes: number }>(old: readonly Row[]): Generator<Row[]> {
  let part: Row[] = [];
  let bytes = 0;
  for (const one of old) {
    if (part.length > 0 && bytes + one.bytes > BYTES_AT_ONCE) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(one);
    bytes += one.bytes;
  }
  if (part.length > 0) yield part;
}

export interface KeptVersions extends VersionTables {
  /** Deletes things of a project whose last versions go, if they are deleted still, and all that belongs to them. */
  forget(client: Transaction, projectId: number, last: readonly OldVersion[]): Promise<void>;
}

/** Deletes the versions that are kept no longer, in small transactions. Returns how many. */
export async function keepVersions(
  pool: Pool,
  kept: KeptVersions,
  bounds: VersionBounds,
  { signal, beat }: Work,
  now = new Date(),
): Promise<number> {
  let deleted = 0;
  for (const projectId of await projectsWithVersions(pool, kept, now)) {
    for (let found = AT_ONCE; found === AT_ONCE; ) {
      const old = await oldVersions(pool, kept, projectId, { ...bounds, limit: AT_ONCE });
      found = old.length;
      for (const part of parts(old)) {
        signal.throwIfAborted();
        beat();
        deleted += await transaction(pool, async (client) => {
          const last = part.filter((one) => one.isLast);
          if (last.length > 0) await kept.forget(client, projectId, last);
          return deleteVersions(client, kept, projectId, part);
        });
      }
    }
    beat();
    signal.throwIfAborted();
  }
  return deleted;
}
