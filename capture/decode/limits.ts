/**
 * The most that a request may carry, both compressed and decompressed: 20 MiB. A body of exactly this size is accepted.
 */
export const MAX_BODY_BYTES = 20_971_520;
/** How deep an event may nest. All later steps recurse: cleaning, storing, exporting. */
export const MAX_DEPTH = 200;

/**
 * How many events a request may hold. A request is stored as a whole, so all of its events are in memory at once, and
 * each takes at least some hundred bytes. Clients send some hundred events.
 */
export const MAX_EVENTS = 100_000;

/** The body cannot be turned into events. The message is for the client. */
export class DecodeError extends Error {
  override name = 'DecodeError';
  /** 400: the body is not valid. 413: it is too large, compressed or decompressed. */
  readonly status: 400 | 413;

  constructor(message: string, status: 400 | 413 = 400) {
    super(message);
    this.status = status;
  }
}

export function tooLarge(what: string): DecodeError {
  return new DecodeError(`maximum event size exceeded: ${what} is larger than ${MAX_BODY_BYTES} bytes`, 413);
}

export function tooMany(events: number): DecodeError {
  return new DecodeError(
    `maximum event count exceeded: the body holds ${events} events, at most ${MAX_EVENTS} are accepted in one request`,
    413,
  );
}
