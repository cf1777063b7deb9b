/** The years 0 to 9999; what is outside, parsing has already replaced. Postgres's own are 4713 BC to 294276. */
const FIRST = -62_167_219_200_000;
const LAST = 253_402_300_799_999;

/** Milliseconds as a column can hold them: an instant that is none becomes the time of receipt. */
export function storableTime({ timestamp, received_at }: { timestamp: number; received_at: number }): number {
  if (!Number.isFinite(timestamp)) return received_at;
  return Math.trunc(Math.min(Math.max(timestamp, FIRST), LAST));
}
