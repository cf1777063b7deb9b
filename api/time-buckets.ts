const HOUR = 3_600_000;
const LENGTHS = { hour: HOUR, day: 24 * HOUR, week: 7 * 24 * HOUR } as const;
export type Bucket = keyof typeof LENGTHS;
/** 1970-01-05 was a Monday. */
const FIRST_MONDAY = 4 * 24 * HOUR;

/** Where the hour, the day or the week (from Monday) of an instant begins, in UTC. */
export function bucketOf(bucket: Bucket, instant: number): number {
  const length = LENGTHS[bucket];
  const origin = bucket === 'week' ? FIRST_MONDAY : 0;
  return Math.floor((instant - origin) / length) * length + origin;
}

/** The beginnings of all buckets from that of `after` to that of `before`; undefined if there are more than `most`. */
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

/** `2026-01-31`, for hours `2026-01-31T13:00`. */
export const bucketLabel = (bucket: Bucket, start: number): string =>
  new Date(start).toISOString().slice(0, bucket === 'hour' ? 16 : 10);
