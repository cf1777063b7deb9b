/** The lengths that an export's intervals can have. */
export const INTERVAL_LENGTHS = ['every 5 minutes', 'every 15 minutes', 'hour', 'day', 'week'] as const;
export type IntervalLength = (typeof INTERVAL_LENGTHS)[number];

/** How time is cut into intervals. */
export interface Cadence {
  interval: IntervalLength;
  /**
   * The IANA name of the zone in which days and weeks begin. Shorter intervals begin at multiples of their length in
   * UTC.
   */
  timezone: string;
  /** 0–23, the local hour at which days and weeks begin. */
  offsetHour: number;
  /** 0–6, the day on which weeks begin; 0 is Sunday. */
  offsetDay: number;
  /**
   * The instant at which the cadence was changed. One interval ends there and the next one begins, wherever it lies.
   */
  seam?: number;
}

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

/** The lengths that never vary, in milliseconds. Days and weeks vary with the clocks. */
const FIXED: Partial<Record<IntervalLength, number>> = {
  'every 5 minutes': 300_000,
  'every 15 minutes': 900_000,
  hour: HOUR,
};

/** Returns the length of the intervals in milliseconds, or undefined for days and weeks. */
export const fixedLength = (cadence: Cadence): number | undefined => FIXED[cadence.interval];

/** Converts the offsets of a cadence to the number of seconds that is stored. */
export function offsetSeconds({ interval, offsetHour, offsetDay }: Cadence): number {
  return ((interval === 'week' ? offsetDay * 24 : 0) + offsetHour) * 3600;
}

/** Builds a cadence from its stored columns. */
export function cadenceOf(
  interval: IntervalLength,
  timezone: string,
  seconds: number,
  seam: number | null = null,
): Cadence {
  const hours = Math.floor(seconds / 3600);
  const cadence = { interval, timezone, offsetHour: hours % 24, offsetDay: Math.floor(hours / 24) % 7 };
  return seam === null ? cadence : { ...cadence, seam };
}
