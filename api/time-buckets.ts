const HOUR = 3_600_000;
const LENGTHS = { hour: HOUR, day: 24 * HOUR, week: 7 * 24 * HOUR } as const;
export type Bucket = keyof typeof LENGTHS;
/** 1970-01-05 was a Monday. */
const FIRST_MONDAY = 4 * 24 * HOUR;

/** Returns the beginning of the hour, day or week (from Monday) that contains an instant, in UTC. */
export function bucketOf(bucket: Bucket, instant: number): number {
  const length = LENGTHS[bucket];
  const origin = bucket === 'week' ? FIRST_MONDAY : 0;
  return Math.floor((instant - origin) / length) * length + origin;
}

/** Lists the beginnings of the buckets from `after` to `before`. Returns undefined if there are more than `most`. */
export function bucketsWithin(
  bucket: Bucket,
  after: number,
  before: number,
  most: number,
): number[] | undefined {
  const first = bucketOf(bucket, after);
  const count = Math.floor((bucketOf(bucket, before) - first) / LENGTHS[bucket]) + 1;
  if (count > most) return undefined;
  return Array.from({ length: Math.max(count, 0) }, (_, index) => first + index * LENGTHS[bucket]);
}

/** Formats the beginning of a bucket: `2026-01-31`, or `2026-01-31T13:00` for an hour. */
export const bucketLabel = (bucket: Bucket, start: number): string =>
  new Date(start).toISOString().slice(0, bucket === 'hour' ? 16 : 10);
