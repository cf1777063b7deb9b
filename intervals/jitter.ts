/** The longest delay that any export has between the end of an interval and the start of its run, in milliseconds. */
export const MAX_JITTER = 60_000;

/**
 * Returns the longest delay between the end of an interval and the start of its run, in milliseconds. It is always the same
 * for one export and spread evenly over all exports. Temporal delays each firing by a part of it, which differs from one
 * interval to the next, so that hourly exports do not start all at once.
 */
export function jitterOf(exportId: string): number {
  // FNV-1a, then the finalizer of MurmurHash3, so that similar ids get very different delays.
  let hash = 0x811c9dc5;
  for (let i = 0; i < exportId.length; i += 1) {
    hash = Math.imul(hash ^ exportId.charCodeAt(i), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  hash ^= hash >>> 16;
  return Math.floor(((hash >>> 0) / 2 ** 32) * (MAX_JITTER + 1));
}
