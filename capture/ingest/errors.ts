/** Events cannot be stored at the moment: too much is waiting, or Postgres is slow or away. Nothing was accepted. */
export class IngestUnavailableError extends Error {
  override name = 'IngestUnavailableError';
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterSeconds: number, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Postgres will never take one of these events, and so none of them was stored. Sending them again is no use. */
export class EventsRefusedError extends Error {
  override name = 'EventsRefusedError';
}

/** Another transaction changed the same persons first. The same work succeeds when it is done again. */
export class PersonConflictError extends Error {
  override name = 'PersonConflictError';
}
