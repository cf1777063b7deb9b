import { DestinationConfigError } from '../../destinations/errors.ts';
import { CompilerBusyError, ModelError } from '../../models/index.ts';
import { type Refusal, refuse } from '../../refusals.ts';
import { SecretError } from '../../secrets/envelope.ts';

const RETRY_SECONDS = 5;
const OPERATOR_SECONDS = 60;
/** The fields of an export that its destination may refuse. All other fields are keys of its configuration. */
const OWN_FIELDS: Readonly<Record<string, string>> = {
  type: 'destination__type',
  model: 'model',
  hogql_query: 'hogql_query',
};

/** Translates an error of a part of an export (its destination, its model, its secrets) into a refusal. */
function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof DestinationConfigError) {
    const { field, message } = error;
    const key =
      field === undefined ? 'destination__config' : (OWN_FIELDS[field] ?? `destination__config__${field}`);
    const code = message.endsWith('is not a valid choice.') ? 'invalid_choice' : 'invalid_input';
    return refuse.invalid(key, message, { code });
  }
  if (error instanceof ModelError) {
    return refuse.invalid(error.field, error.message, { reason: error.detail });
  }
  if (error instanceof CompilerBusyError) {
    return error.slow
      ? refuse.invalid(error.slow, error.message)
      : refuse.unavailable(error.message, RETRY_SECONDS);
  }
  // The operator has to act, not the user. The message contains no secret.
  if (error instanceof SecretError) return refuse.unavailable(error.message, OPERATOR_SECONDS);
  return undefined;
}

/** Does the work. If a part of the export is invalid, throws a refusal that says what is wrong. */
export async function refusing<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw refusalOf(error) ?? error;
  }
}
