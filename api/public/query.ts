export type CaptureQuery = Readonly<Record<string, string | string[] | undefined>>;

/** Of a parameter that comes several times, the last one. */
export function lastOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.at(-1) : value;
}
