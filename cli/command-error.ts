import { PlainError } from '../values/plain-error.ts';

/** A command cannot do what the user asked for. The command line prints the message without a stack trace and exits with 1. */
export class CommandError extends PlainError {
  override readonly name: string = 'CommandError';
}

/** The user calls a command in a wrong way. The exit code is 2. */
export class UsageError extends CommandError {
  override readonly name = 'UsageError';
}
