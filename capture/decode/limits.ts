import { TOO_DEEP } from '../../values/function-depth.ts';

/**
 * The most that a request may carry, both compressed and decompressed: 20 MiB. A body of exactly this size is accepted.
 */
export const MAX_BODY_BYTES = 20_971_520;
/** How deep an event may nest. All later steps recurse: cleaning, storing, exporting. */
export const MAX_DEPTH = 200;
/** Bodies up to this size are parsed in one go, within some milliseconds. Larger ones let others have their turn. */
export const ONE_GO = 512 * 1024;
/**
 * About how many values an event may hold, lists and objects included. A value takes many times as much time and memory
 * as its bytes, and JSON cannot be parsed in parts. A body that is parsed in one go cannot hold more.
 */
export const MAX_VALUES = ONE_GO / 2;

/**
 * How many events a request may hold. A request is stored as a whole, so all of its events are in memory at once, and
 * each takes at least some hundred bytes. Clients send some hundred events.
 */
export const MAX_EVENTS = 100_000;

/** Why a body is refused as a whole: none of its events is stored. */
export const REFUSAL_REASONS = [
  'empty_body',
  'invalid_form',
  'unknown_encoding',
  'invalid_gzip',
  'invalid_deflate',
  'invalid_br',
  'invalid_zstd',
  'invalid_lz64',
  'invalid_base64',
  'invalid_json',
  'invalid_request',
  'no_event',
  'body_too_large',
  'too_many_events',
  'function_circle',
] as const;

export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** The body cannot be turned into events. The message is for the client. */
export class DecodeError extends Error {
  override name = 'DecodeError';
  readonly reason: RefusalReason;
  /** 400: the body is not valid. 413: it is too large, compressed or decompressed. */
  readonly status: 400 | 413;
  /** The project key, if it was found although the rest was not. It is not checked. */
  token: unknown;

  constructor(reason: RefusalReason, message: string, status: 400 | 413 = 400) {
    super(message);
    this.reason = reason;
    this.status = status;
  }
}

/** The body is larger than what is parsed in one go. It is decoded elsewhere, from its beginning. */
export class LargeBodyError extends Error {
  override name = 'LargeBodyError';
}

/** Counts what decompression makes, until the body is admitted to be parsed or refused. */
export interface Memory {
  /** Waits for the turn to decompress a body that is not small. */
  unpack(): void | Promise<void>;
  /** Takes memory. Throws the refusal when there is none left. */
  grow(bytes: number): void;
  /** Gives memory back. */
  shrink(bytes: number): void;
}

export function tooLarge(what: string): DecodeError {
  return new DecodeError(
    'body_too_large',
    `maximum event size exceeded: ${what} is larger than ${MAX_BODY_BYTES} bytes`,
    413,
  );
}

/** Too many functions, one after the other, have led to the request. */
export const inCircle = () => new DecodeError('function_circle', TOO_DEEP);

export function tooMany(events: number): DecodeError {
  return new DecodeError(
    'too_many_events',
    `maximum event count exceeded: the body holds ${events} events, at most ${MAX_EVENTS} are accepted in one request`,
    413,
  );
}
