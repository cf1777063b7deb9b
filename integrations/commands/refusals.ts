import { type Refusal, refuse } from '../../refusals.ts';
import { SecretError } from '../../secrets/envelope.ts';
import { KindConfigError } from '../kinds/config.ts';

const OPERATOR_SECONDS = 60;

function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof KindConfigError) {
    return refuse.invalid(['config', ...error.path].join('__'), error.message, { code: error.code });
  }
  // The operator has to act, not the user. The message contains no secret.
  if (error instanceof SecretError) return refuse.unavailable(error.message, OPERATOR_SECONDS);
  return undefined;
}

/** Does the work. If a configuration is invalid or its secrets cannot be opened, throws a refusal that says so. */
export function refusing<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw refusalOf(error) ?? error;
  }
}
