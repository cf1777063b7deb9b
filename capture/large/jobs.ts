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

/** The project of a body, as far as its rows depend on it. */
export interface RowsProject {
  id: number;
  token: string;
  anonymizeIps: boolean;
}

/** Make the rows of an opened body. */
export interface ReadJob {
  kind: 'read';
  json: Uint8Array;
  formToken: string | undefined;
  context: Pick<ParseContext, 'now' | 'ip' | 'sentAt' | 'isEngage' | 'v1' | 'token'>;
  project: RowsProject;
  /** The file with the places of addresses. */
  geoip: string | undefined;
}

export interface ReadRows {
  rows: PackedRows;
  events: number;
  given: readonly string[];
  notices: Pick<Notices, 'skipped' | 'counts' | 'skippedCount'>;
}

export type LargeJob = OpenJob | ReadJob;
export type LargeAnswer = Opened | ReadRows;
