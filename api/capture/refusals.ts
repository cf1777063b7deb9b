import { DecodeError } from '../../capture/decode/limits.ts';
import { EventsRefusedError, IngestUnavailableError } from '../../capture/ingest.ts';
import { TokenError } from '../../capture/parse/envelope.ts';
import { HistoricalMigrationError } from '../../capture/parse/historical.ts';
import { ApiError, errors } from '../errors.ts';

/** What capture throws, as an answer. Clients send again after 408, 413 (in halves), 429 and 5xx only. */
export function toRefusal(error: unknown): unknown {
  if (error instanceof DecodeError) {
    return new ApiError(error.status, {
      type: 'invalid_request',
      code: error.status === 413 ? 'request_too_large' : 'parse_error',
      detail: error.message,
      attr: null,
    });
  }
  if (error instanceof TokenError) return errors.authenticationFailed(error.message);
  if (error instanceof HistoricalMigrationError) {
    return new ApiError(400, {
      type: 'validation_error',
      code: 'historical_migration',
      detail: error.message,
      attr: 'batch',
      errors: [...error.offences],
    });
  }
  if (error instanceof IngestUnavailableError) {
    return errors.unavailable(error.message, error.retryAfterSeconds);
  }
  if (error instanceof EventsRefusedError) return errors.validation('invalid_input', error.message, null);
  return error;
}
