/**
 * An error whose message says all that a person needs: what is wrong, where, and what to do. Whoever shows it to a person
 * leaves out where in the code it comes from.
 */
export class PlainError extends Error {
  override readonly name: string = 'PlainError';
}
