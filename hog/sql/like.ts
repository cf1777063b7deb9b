/**
 * A LIKE pattern of ClickHouse as Postgres reads it: a backslash escapes `%`, `_` and itself, and is a
 * character like others before anything else, where Postgres would drop it.
 */
export function likePattern(pattern: string): string {
  return pattern.replace(/\\([\s\S]?)/g, (found, next: string) =>
    next === '%' || next === '_' || next === '\\' ? found : `\\\\${next}`,
  );
}
