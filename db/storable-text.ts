/**
 * Returns a message that Postgres can store: without the character 0 and halves of surrogate pairs, and not longer than
 * `length`.
 */
export function storableText(text: string, length: number): string {
  const whole = text.replaceAll('\0', '').toWellFormed();
  return whole.length <= length ? whole : `${whole.slice(0, length - 1).toWellFormed()}…`;
}
