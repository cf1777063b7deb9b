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

/** Classes of SQLSTATE that are about the data: bad values, broken constraints, limits such as nesting. */
const DATA_CLASSES = new Set(['22', '23', '54']);

/**
 * Whether Postgres refuses the data as such, so that it will refuse it again. Everything else (no connection, no
 * space, a deadlock, a table that is still to be migrated) may be over when it is tried again.
 */
export function refusesData(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' && code.length === 5 && DATA_CLASSES.has(code.slice(0, 2));
}
