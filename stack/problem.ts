import { PlainError } from '../values/plain-error.ts';

/**
 * Sluice cannot start on this machine. The message is for the person who typed `npm start`: whole sentences with the
 * place, the value and what to do. The terminal shows it without a stack trace.
 */
export class StackProblem extends PlainError {
  override readonly name = 'StackProblem';
}

/** Prints one progress line on the terminal. */
export type Report = (line: string) => void;
