/** An instant of the years 0 to 9999 in ISO 8601, as Postgres reads it: the year 0 is 1 BC there. */
export function isoForPostgres(iso: string): string {
  return iso.startsWith('0000-') ? `0001-${iso.slice(5)} BC` : iso;
}

/** Milliseconds since 1970 as a `timestamptz` that Postgres reads. */
export function timestamptzText(milliseconds: number): string {
  return isoForPostgres(new Date(milliseconds).toISOString());
}
