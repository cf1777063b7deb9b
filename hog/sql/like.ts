/**
 * Translates a LIKE pattern of ClickHouse to Postgres. A backslash escapes `%`, `_` and itself. Before any other
 * character it is a literal backslash; Postgres would drop it.
 */
export function likePattern(pattern: string): string {
  return pattern.replace(/\\([\s\S]?)/g, (found, next: string) =>
    next === '%' || next === '_' || next === '\\' ? found : `\\\\${next}`,
  );
}
