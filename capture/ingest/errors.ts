import { isOfClass } from '../../db/error-class.ts';

/** The events cannot be stored now: too much is waiting, or Postgres is slow or down. None of them was accepted. */
export class IngestUnavailableError extends Error {
  override name = 'IngestUnavailableError';
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterSeconds: number, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Postgres refuses at least one of these events, so none was stored. It would refuse them again. */
export class EventsRefusedError extends Error {
  override name = 'EventsRefusedError';
}

/** Another transaction changed the same persons first. A retry of the whole transaction succeeds. */
export class PersonConflictError extends Error {
  override name = 'PersonConflictError';
}

/** Classes of SQLSTATE that concern the data: bad values, broken constraints, exceeded limits such as nesting. */
const DATA_CLASSES = ['22', '23', '54'];
/**
 * Something is there already. Two transactions that create the same person or group at the same moment meet this: Postgres looks
 * for the row of a conflict by one index only, and the other index refuses it. The next attempt finds the row.
 */
const UNIQUE_VIOLATION = '23505';

/**
 * Whether Postgres refuses the data itself, and would refuse it again. Any other error (no connection, no space, a
 * deadlock, a missing migration) may be gone at the next attempt.
 */
export function refusesData(error: unknown): boolean {
  return isOfClass(error, DATA_CLASSES) && (error as { code: string }).code !== UNIQUE_VIOLATION;
}
