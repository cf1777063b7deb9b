import { z } from 'zod';

const UNIT_MILLISECONDS = { h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 } as const;
const ISO = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?\s?(?:Z|[+-]\d\d(?::?\d\d)?)?)?$/i;

/**
 * Reads a time in ISO 8601 and returns it as Postgres accepts it, with all its digits. Without an offset it is in UTC.
 * Returns undefined if there is no such time.
 */
export function isoTextOf(text: string): string | undefined {
  if (!ISO.test(text)) return undefined;
  // Date refuses hours that do not exist, but takes 30 February for 2 March. It needs a T, and an offset with minutes.
  const date = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  if (Number.isNaN(date.getTime()) || date.toISOString().slice(0, 10) !== text.slice(0, 10)) return undefined;
  if (text.startsWith('0000')) return undefined;
  const strict = text
    .toUpperCase()
    .replace(' ', 'T')
    .replace(/\s/, '')
    .replace(/([+-]\d\d)$/, (zone, _hours, at: number) => (at > 10 ? `${zone}:00` : zone))
    .replace(/([+-]\d\d)(\d\d)$/, (zone, hours, minutes, at: number) =>
      at > 10 ? `${hours}:${minutes}` : zone,
    );
  return Number.isNaN(Date.parse(strict)) ? undefined : strict;
}

/** Reads a time before now such as `-7d` or `-1h`. Returns undefined if the text is none. */
export function agoOf(text: string): string | undefined {
  const relative = /^-(\d{1,5})([hdw])$/.exec(text);
  if (!relative) return undefined;
  const unit = UNIT_MILLISECONDS[relative[2] as keyof typeof UNIT_MILLISECONDS];
  return new Date(Date.now() - Number(relative[1]) * unit).toISOString();
}

/** Reads a time in ISO 8601, or one before now. Returns undefined if there is no such time. */
export const instantOf = (text: string): string | undefined => agoOf(text) ?? isoTextOf(text);

/** Converts a time that `isoTextOf` returned to milliseconds since 1970. */
export const millisecondsOf = (text: string): number =>
  Date.parse(/T.*(?:Z|[+-]\d\d:?\d\d)$/i.test(text) || !text.includes('T') ? text : `${text}Z`);

/** Converts a time that `isoTextOf` returned to UTC. It keeps its microseconds. */
export function utcTextOf(text: string): string {
  const inUtc = new Date(millisecondsOf(text)).toISOString();
  const further = /\.\d{3}(\d{1,3})/.exec(text)?.[1] ?? '';
  return /[1-9]/.test(further) ? inUtc.replace('Z', `${further}Z`) : inUtc;
}

const momentOf = (read: (text: string) => string | undefined) =>
  z
    .string()
    .transform((text, context) => {
      // A plus sign that the client did not encode arrives as a space.
      const found = read(
        text
          .trim()
          .replace(/(\d) (\d\d:?\d\d)$/, (all, digit, zone, at) => (at > 10 ? `${digit}+${zone}` : all)),
      );
      if (found !== undefined) return found;
      context.addIssue({ code: 'custom', message: 'Must be an ISO 8601 time, or relative as -7d or -1h.' });
      return z.NEVER;
    })
    .optional();

/** A time in a query: in ISO 8601, or relative to now. */
export const moment = momentOf(instantOf);

/**
 * A time in a query for events, which may lie in the year 0. Postgres writes that year otherwise, and it has the days
 * of the year 2000.
 */
export const eventMoment = momentOf((text) =>
  text.startsWith('0000-') ? isoTextOf(`2000${text.slice(4)}`)?.replace('2000', '0000') : instantOf(text),
);
