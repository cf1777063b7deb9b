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
