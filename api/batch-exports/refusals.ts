import { DestinationConfigError } from '../../destinations/errors.ts';
import { SourceError } from '../../hog/errors.ts';
import { ModelError } from '../../models/index.ts';
import { SecretError } from '../../secrets/envelope.ts';
import { errors } from '../errors.ts';

const RETRY_SECONDS = 5;
const OPERATOR_SECONDS = 60;
/** Fields of an export that its destination may refuse; all others are keys of the destination's configuration. */
const OWN_FIELDS: Readonly<Record<string, string>> = { type: 'destination__type', model: 'model' };

/** What the parts that an export is made of say about it, as answers; everything else is thrown on. */
export function refusalOf(error: unknown): unknown {
  if (error instanceof DestinationConfigError) {
    const { field, message } = error;
    const attr =
      field === undefined ? 'destination__config' : (OWN_FIELDS[field] ?? `destination__config__${field}`);
    return errors.validation(
      message.endsWith('is not a valid choice.') ? 'invalid_choice' : 'invalid_input',
      message,
      attr,
    );
  }
  if (error instanceof ModelError) {
    return errors.validation('invalid_input', error.message, error.field, error.detail);
  }
  if (error instanceof SourceError && error.code === 'busy') {
    return errors.unavailable('Too many queries are being read at the moment. Try again.', RETRY_SECONDS);
  }
  // The operator has to act, not who asks; the message names no secret.
  if (error instanceof SecretError) return errors.unavailable(error.message, OPERATOR_SECONDS);
  return error;
}

/** Does it, and refuses the request for what is wrong with the export. */
export async function refusing<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw refusalOf(error);
  }
}
