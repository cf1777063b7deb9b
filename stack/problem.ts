/**
 * Something about this machine keeps Sluice from starting. The message is written for the person who typed
 * `npm start`: whole sentences with the place, the value and what to do; it is printed without a stack trace.
 */
export class StackProblem extends Error {
  override name = 'StackProblem';
}

/** Takes one progress line for the terminal. */
export type Report = (line: string) => void;
