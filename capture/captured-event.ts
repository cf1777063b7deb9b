/**
 * One event as it came in, whatever wire form carried it: parsed, its clock corrected, its text fit to be stored.
 * `parse` makes it (pure), transformations may change it, `ingest` stores it.
 */
export interface CapturedEvent {
  /** Its place in the request. */
  index: number;
  uuid: string;
  event: string;
  distinct_id: string;
  /** Everything the client sent as properties, including `$set`, `$groups`, `$session_id` and the like. */
  properties: Record<string, unknown>;
  /** When it happened: milliseconds since 1970 in UTC, corrected for the client's clock. */
  timestamp: number;
  /** Milliseconds when the API received it. */
  received_at: number;
  /** The address it came from; undefined when the project anonymizes addresses. */
  ip: string | undefined;
  /** A part of an import of the past: keeps its order, triggers nothing. */
  historical: boolean;
}

/** Why an event was not stored although its request was answered with 200; shown as ingestion warnings. */
export interface SkippedEvent {
  /** Index in the request's batch. */
  index: number;
  reason: string;
  /** What helps to find the event: its name, its distinct_id, the offending value. Never the whole event. */
  detail: Record<string, unknown>;
}

/** The years 0 to 9999; what is outside, parsing has already replaced. Postgres's own are 4713 BC to 294276. */
const FIRST = -62_167_219_200_000;
const LAST = 253_402_300_799_999;

/** Milliseconds as a column can hold them: an instant that is none becomes the time of receipt. */
export function storableTime({ timestamp, received_at }: { timestamp: number; received_at: number }): number {
  if (!Number.isFinite(timestamp)) return received_at;
  return Math.trunc(Math.min(Math.max(timestamp, FIRST), LAST));
}

const LONGEST_NAME = 200;

/** At most 200 characters, not cut through the middle of one. */
export function cut(text: string): string {
  if (text.length <= LONGEST_NAME) return text;
  const characters = Array.from(text.slice(0, LONGEST_NAME * 2 + 2));
  return characters.length <= LONGEST_NAME ? text : characters.slice(0, LONGEST_NAME).join('');
}
