import { instantText } from '../values/dates.ts';

/** The time from `start` (included) to `end` (excluded), in milliseconds since 1970. */
export interface Interval {
  start: number;
  end: number;
}

/** An interval whose `start` may be null, which means everything up to the end. */
export interface OpenInterval {
  start: number | null;
  end: number;
}

/** An open interval as Temporal, Postgres and JSON hold it: ISO 8601 in UTC, to the millisecond. */
export interface IntervalText {
  start: string | null;
  end: string;
}

const isoText = (instant: number | string): string => new Date(instant).toISOString();

/** Writes an interval as text. Two spellings of the same instants become the same text. */
export const intervalText = ({ start, end }: OpenInterval | IntervalText): IntervalText => ({
  start: start === null ? null : isoText(start),
  end: isoText(end),
});

/** Shows an interval to people: `2027-01-31T00:00:00Z – 2027-02-01T00:00:00Z`. */
export const rangeText = ({ start, end }: OpenInterval | IntervalText, dash = '–'): string =>
  `${start === null ? 'the beginning' : instantText(start)} ${dash} ${instantText(end)}`;

/** Reads the text of an interval. */
export const readInterval = ({ start, end }: IntervalText): OpenInterval => ({
  start: start === null ? null : Date.parse(start),
  end: Date.parse(end),
});
