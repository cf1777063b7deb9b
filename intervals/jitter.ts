/** The most that a run starts after the end of its interval, in milliseconds. */
export const MAX_JITTER = 60_000;

/**
 * How long after the end of its intervals an export starts, so that all hourly exports do not start at once: always the
 * same for an export, spread evenly over exports.
 */
export function jitterOf(exportId: string): number {
  // FNV-1a, then the finalizer of MurmurHash3: ids that differ in little end up far from each other.
  let hash = 0x811c9dc5;
  for (let i = 0; i < exportId.length; i += 1) {
    hash = Math.imul(hash ^ exportId.charCodeAt(i), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  hash ^= hash >>> 16;
  return Math.floor(((hash >>> 0) / 2 ** 32) * (MAX_JITTER + 1));
}
