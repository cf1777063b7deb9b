/** What a request may carry, compressed or not: 20 MiB. A body of exactly this size is accepted. */
export const MAX_BODY_BYTES = 20_971_520;
/** How deep one event may nest. Everything after parsing recurses: cleaning, storing, exporting. */
export const MAX_DEPTH = 200;

/**
 * How many events one request may hold. All of a request is stored or nothing, so all of its events are in memory at
 * once, each some hundred bytes whatever its size; clients send some hundreds.
 */
export const MAX_EVENTS = 100_000;

/** A body that cannot be turned into events; the message is for whoever sent it. */
export class DecodeError extends Error {
  override name = 'DecodeError';
  /** 400: it is not what it claims to be. 413: it is too large, as sent or decompressed. */
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
