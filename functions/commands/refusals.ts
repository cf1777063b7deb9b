import { type Refusal, refuse } from '../../refusals.ts';
import { SecretError } from '../../secrets/envelope.ts';
import { FunctionCompilerBusyError } from '../compiler.ts';
import { FunctionError } from '../rules/definition.ts';

const RETRY_SECONDS = 5;
const OPERATOR_SECONDS = 60;

/** Translates an error of a part of a function into a refusal. */
function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof FunctionError) {
    const { field, message, code, reason } = error.fault;
    return refuse.invalid(field, message, { ...(code ? { code } : {}), reason: reason ?? null });
  }
  if (error instanceof FunctionCompilerBusyError) return refuse.unavailable(error.message, RETRY_SECONDS);
  // The operator has to act, not the user. The message contains no secret.
  if (error instanceof SecretError) return refuse.unavailable(error.message, OPERATOR_SECONDS);
  return undefined;
}

/** Does the work. If a part of the function is invalid, throws a refusal that says what is wrong. */
export async function refusing<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw refusalOf(error) ?? error;
  }
}
