/** An instant in ISO 8601 as microseconds since 1970. */
export function microsecondsOf(instant: string): bigint {
  const fraction = /\.(\d+)/.exec(instant)?.[1] ?? '';
  const seconds = Math.floor(Date.parse(instant) / 1_000);
  return BigInt(`${seconds}${fraction.padEnd(6, '0').slice(0, 6)}`);
}
