// What the main thread and the threads for large bodies say to each other.
import type { WireBody } from '../decode/decode.ts';
import type { Notices } from '../parse/notices.ts';
import type { ParseContext } from '../parse/parse.ts';
import type { PackedRows } from './rows.ts';

/** Find the JSON of a body and whose it is. */
export interface OpenJob extends Pick<WireBody, 'contentType' | 'contentEncoding' | 'compression' | 'data'> {
  kind: 'open';
  bytes: Uint8Array;
}

export interface Opened {
  json: Uint8Array<ArrayBuffer>;
  /** The project key, if it came in a form field or around the payload. */
  formToken: string | undefined;
  /** The project key that the body gives. It is not checked. */
  token: unknown;
  events: number;
}

/** The project of a body, as far as its events depend on it. */
export interface BodyProject {
  id: number;
  token: string;
  anonymizeIps: boolean;
}

interface Parsing {
  json: Uint8Array;
  formToken: string | undefined;
  context: Pick<ParseContext, 'now' | 'ip' | 'sentAt' | 'isEngage' | 'v1' | 'token' | 'depth'>;
  project: BodyProject;
}

/** Parse the events of an opened body, and make their rows. */
export interface RowsJob extends Parsing {
  kind: 'rows';
  /** The file with the places of addresses. */
  geoip: string | undefined;
}

/** Only parse the events. Something on the main thread changes them. */
export interface EventsJob extends Parsing {
  kind: 'events';
}

interface ParsedBody {
  given: readonly string[];
  notices: Pick<Notices, 'skipped' | 'counts' | 'skippedCount'>;
}

export interface BodyRows extends ParsedBody {
  rows: PackedRows;
}

export interface BodyEvents extends ParsedBody {
  /** Some events each, as V8 serializes them. */
  slices: ArrayBuffer[];
}

export type LargeJob = OpenJob | RowsJob | EventsJob;
export type LargeAnswer = Opened | BodyRows | BodyEvents;
