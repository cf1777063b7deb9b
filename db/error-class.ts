/** Classes of errors of Postgres that say something of what is read, and not of whether anything can be read at the moment. */
export const OF_DATA: readonly string[] = ['22', '54', 'XX'];

/** Answers whether Postgres has refused something for a reason of one of these classes: the first two characters of a SQLSTATE. */
export function isOfClass(error: unknown, classes: readonly string[]): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' && code.length === 5 && classes.includes(code.slice(0, 2));
}
