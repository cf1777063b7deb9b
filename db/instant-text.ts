/** An instant, in milliseconds since 1970, as Postgres reads it; of the years 0 to 9999. Its year before 1 is 1 BC. */
export function instantText(milliseconds: number): string {
  const text = new Date(milliseconds).toISOString();
  return text.startsWith('0000-') ? `0001-${text.slice(5)} BC` : text;
}
