/**
 * The milliseconds of a `Retry-After`, which holds seconds or a date. Undefined: it names no time to come, so whoever waits
 * decides for how long.
 */
export function retryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const milliseconds = /^\d+$/.test(value.trim()) ? Number(value) * 1_000 : Date.parse(value) - now;
  return Number.isFinite(milliseconds) && milliseconds > 0 ? milliseconds : undefined;
}
