import { type Cadence, DAY, fixedLength } from './cadence.ts';
import { startOfDate, weekdayOf } from './intervals.ts';
import { cadenceZone } from './zone.ts';

/** The client sent a range that cannot be backfilled. The message is for the client. */
export class BackfillRangeError extends Error {
  override readonly name = 'BackfillRangeError';
  /** The field of the request that is wrong. */
  readonly field: 'start_at' | 'end_at';

  constructor(field: 'start_at' | 'end_at', message: string) {
    super(message);
    this.field = field;
  }
}

export interface BackfillRange {
  /** Null means from the beginning. */
  start: number | null;
  /** Null means up to the present, however long the backfill takes. */
  end: number | null;
}

export interface BackfillRules {
  now: number;
  /** Whether the export allows a range without a beginning, or without an end. */
  openStart?: boolean;
  openEnd?: boolean;
}

interface Moment {
  instant: number;
  /** Milliseconds east of UTC, to show the instant as the client wrote it. */
  offset: number;
}

/**
 * Reads the range of a backfill from a request. For intervals of an hour or less, its bounds are times with an offset.
 * For days and weeks they are dates, which begin at the local hour of the export. The bounds need not be edges of short
 * intervals; see `alignOutward`.
 */
export function readBackfillRange(
  cadence: Cadence,
  body: { start_at?: unknown; end_at?: unknown },
  { now, openStart = false, openEnd = false }: BackfillRules,
): BackfillRange {
  const start = read(cadence, body.start_at, 'start_at');
  const end = read(cadence, body.end_at, 'end_at');
  if (start === null && !openStart) {
    throw new BackfillRangeError(
      'start_at',
      'Backfilling from the beginning of time is not enabled for this team.',
    );
  }
  if (end === null && !openEnd) {
    throw new BackfillRangeError('end_at', 'Backfilling a BatchExport with no end date is not allowed');
  }
  if (start !== null && end !== null && start.instant >= end.instant) {
    throw new BackfillRangeError(
      'start_at',
      "The initial backfill datetime 'start_at' must be before 'end_at'",
    );
  }
  if (end !== null && end.instant > now) {
    throw new BackfillRangeError('end_at', `The provided 'end_at' (${shown(end)}) is in the future`);
  }
  return { start: start?.instant ?? null, end: end?.instant ?? null };
}

function read(cadence: Cadence, input: unknown, field: 'start_at' | 'end_at'): Moment | null {
  if (input === undefined || input === null) return null;
  return fixedLength(cadence) === undefined ? readDate(cadence, input, field) : readInstant(input, field);
}

const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const DATETIME =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d)(?::(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?(?:([Zz])|([+-])(\d\d):?(\d\d))?)?$/;
const MAX_SHOWN = 100;

/** Returns the number of days since 1970, or null if there is no such date. */
function dateOf(text: string): number | null {
  const [, year, month, day] = (DATE.exec(text) ?? []).map(Number) as [number, number, number, number];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const real = date.getUTCMonth() === month - 1 && date.getUTCDate() === day && year > 0;
  return real ? date.getTime() / DAY : null;
}

function instantOf(text: string): { instant: number; offset: number | null } | null {
  const match = DATETIME.exec(text);
  if (!match) return null;
  const [, day, hour = '0', minute = '0', second = '0', fraction = '', utc, sign, hours, minutes] = match;
  const date = dateOf(day as string);
  const [h, m, s, oh, om] = [hour, minute, second, hours ?? '0', minutes ?? '0'].map(Number) as [
    ...[number, number, number],
    ...[number, number],
  ];
  if (date === null || h > 23 || m > 59 || s > 59 || oh > 23 || om > 59) return null;
  const wall = date * DAY + ((h * 60 + m) * 60 + s) * 1000 + Number(fraction.padEnd(3, '0').slice(0, 3));
  if (utc === undefined && sign === undefined) return { instant: wall, offset: null };
  const offset = utc === undefined ? (oh * 60 + om) * 60_000 * (sign === '-' ? -1 : 1) : 0;
  return { instant: wall - offset, offset };
}

function readInstant(input: unknown, field: 'start_at' | 'end_at'): Moment {
  const text = inputText(input);
  const read = typeof input === 'string' ? instantOf(input) : null;
  if (!read) throw new BackfillRangeError(field, `Input ${text} is not a valid ISO formatted datetime.`);
  if (read.offset === null) throw new BackfillRangeError(field, `Input ${text} is naive.`);
  return { instant: read.instant, offset: read.offset };
}

function readDate(cadence: Cadence, input: unknown, field: 'start_at' | 'end_at'): Moment {
  const text = inputText(input);
  const date = typeof input === 'string' && DATE.test(input) ? dateOf(input) : null;
  if (date === null) {
    const invalid = `Input '${text}' is not a valid ISO formatted date.`;
    const timed = typeof input === 'string' && instantOf(input) !== null;
    throw new BackfillRangeError(
      field,
      timed
        ? `${invalid} Daily or weekly batch export backfills expect only the date component, but a time was included.`
        : invalid,
    );
  }
  if (cadence.interval === 'week' && weekdayOf(date) !== cadence.offsetDay) {
    const [day, expected] = [weekdayOf(date), cadence.offsetDay].map((one) => WEEKDAYS[one]);
    throw new BackfillRangeError(
      field,
      `Input ${text} is not on the correct day of the week for this batch export. ` +
        `${text} is a ${day} but this batch export is configured to run weekly on ${expected}.`,
    );
  }
  const instant = startOfDate(cadence, date);
  return { instant, offset: cadenceZone(cadence).offsetAt(instant) };
}

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

const inputText = (input: unknown): string =>
  (typeof input === 'string' ? input : (JSON.stringify(input) ?? String(input))).slice(0, MAX_SHOWN);

/** Formats an instant as `2026-01-31T13:00:00+01:00`. */
function shown({ instant, offset }: Moment): string {
  const wall = new Date(instant + offset).toISOString().slice(0, 19);
  const minutes = Math.floor(Math.abs(offset) / 60_000);
  const two = (number: number) => String(number).padStart(2, '0');
  return `${wall}${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}
