/**
 * One event, the same whatever wire form it came in: parsed, its time corrected for the client's clock, its texts fit
 * to be stored. `parse` makes it, transformations may change it, `ingest` stores it.
 */
export interface CapturedEvent {
  /** Index in the request. */
  index: number;
  uuid: string;
  event: string;
  distinct_id: string;
  /** All properties that the client sent, including `$set`, `$groups`, `$session_id` and the like. */
  properties: Record<string, unknown>;
  /** When it happened: milliseconds since 1970 in UTC, corrected for the client's clock. */
  timestamp: number;
  /** Milliseconds when the API received it. */
  received_at: number;
  /** The client's address. Undefined when the project anonymizes addresses. */
  ip: string | undefined;
  /** Whether the event belongs to a historical import. Such events keep their order and trigger nothing. */
  historical: boolean;
  /** What transformations changed: names without values. Absent: nothing. */
  transformations?: readonly object[];
}

/** Why an event was not stored although its request was answered with 200. Projects see it as an ingestion warning. */
export interface SkippedEvent {
  /** Index in the request's batch. */
  index: number;
  reason: string;
  /** What helps to find the event: its name, its distinct_id, the bad value. Never the whole event. */
  detail: Record<string, unknown>;
}

/** The years 0 to 9999. Parsing has already replaced other times. Postgres itself takes 4713 BC to 294276. */
const FIRST = -62_167_219_200_000;
const LAST = 253_402_300_799_999;

/**
 * The event's time in milliseconds, as a column can hold it. A time that is not a number becomes the time of receipt.
 */
export function storableTime({ timestamp, received_at }: { timestamp: number; received_at: number }): number {
  if (!Number.isFinite(timestamp)) return received_at;
  return Math.trunc(Math.min(Math.max(timestamp, FIRST), LAST));
}
