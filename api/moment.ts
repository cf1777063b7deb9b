import { z } from 'zod';

const UNIT_MILLISECONDS = { h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 } as const;
const ISO = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?\s?(?:Z|[+-]\d\d(?::?\d\d)?)?)?$/i;

/** ISO 8601 as Postgres reads it, with all its digits, in UTC unless it says otherwise; undefined: there is no such time. */
export function isoTextOf(text: string): string | undefined {
  if (!ISO.test(text)) return undefined;
  // Date knows hours that do not exist, but takes 30 February for 2 March; it wants a T and minutes in the zone.
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

/** The same, or a time before now: `-7d`, `-1h`. */
export function instantOf(text: string): string | undefined {
  const relative = /^-(\d{1,5})([hdw])$/.exec(text);
  if (relative) {
    const unit = UNIT_MILLISECONDS[relative[2] as keyof typeof UNIT_MILLISECONDS];
    return new Date(Date.now() - Number(relative[1]) * unit).toISOString();
  }
  return isoTextOf(text);
}

/** Milliseconds of such an instant; without a zone it is in UTC. */
export const millisecondsOf = (text: string): number =>
  Date.parse(/T.*(?:Z|[+-]\d\d:?\d\d)$/i.test(text) || !text.includes('T') ? text : `${text}Z`);

const momentOf = (read: (text: string) => string | undefined) =>
  z
    .string()
    .transform((text, context) => {
      // A plus sign that nobody encoded arrives as a space.
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

/** A moment in a query. */
export const moment = momentOf(instantOf);

/** The same for events, which may be of the year 0 (not as Postgres reads it); it has the days of the year 2000. */
export const eventMoment = momentOf((text) =>
  text.startsWith('0000-') ? isoTextOf(`2000${text.slice(4)}`)?.replace('2000', '0000') : instantOf(text),
);
