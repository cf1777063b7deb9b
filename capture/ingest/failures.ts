/** Classes of SQLSTATE that are about the data: bad values, broken constraints, limits such as nesting. */
const DATA_CLASSES = new Set(['22', '23', '54']);

/**
 * Whether Postgres refuses the data as such, so that it will refuse it again. Everything else (no connection, no
 * space, a deadlock, a table that is still to be migrated) may be over when it is tried again.
 */
export function refusesData(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' && code.length === 5 && DATA_CLASSES.has(code.slice(0, 2));
}
