/** An instant in ISO 8601, of the years 0 to 9999, as Postgres reads it: its year before 1 is 1 BC. */
export function isoForPostgres(iso: string): string {
  return iso.startsWith('0000-') ? `0001-${iso.slice(5)} BC` : iso;
}

/** The same of milliseconds since 1970. */
export function instantText(milliseconds: number): string {
  return isoForPostgres(new Date(milliseconds).toISOString());
}
