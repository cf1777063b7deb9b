const ISO =
  /^(\d{4}|[+-]\d{6})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,12}))?)?\s*([Zz]|[+-]\d\d(?::?\d\d)?)?)?$/;
/** ISO 8601 without separators, `20260102T030405Z`. */
const BASIC_ISO =
  /^(\d{4})(\d\d)(\d\d)(?:[Tt](\d\d)(\d\d)(?:(\d\d)(?:[.,](\d{1,12}))?)?([Zz]|[+-]\d\d(?::?\d\d)?)?)?$/;
/** A date by its week, `2026-W05-3` or `2026W053`. Without a day it is the Monday. */
const WEEK_DATE = /^(\d{4})(-?)[Ww](\d\d)(?:\2([1-7]))?(?=$|[Tt ])/;
/** A date by the day of its year, `2026-045` or `2026045`. */
const ORDINAL_DATE = /^(\d{4})(-?)(\d{3})(?=$|[Tt ])/;
const RFC_2822 =
  /^(?:[A-Za-z]{3},?\s+)?(\d{1,2})\s+([A-Za-z]{3})\s+(\d{4})\s+(\d\d):(\d\d)(?::(\d\d))?\s*([Zz]|UTC|GMT|[+-]\d{4})?$/;
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const NUMERIC = /^\d{9,19}(?:\.\d{1,9})?$/;
/** A time with a zone behind it, as databases (`… UTC`) and Java (`…+01:00[Europe/Paris]`) write it. */
const NAMED_ZONE = /^(.*\d)(?:\s?(?:UTC|GMT)|(Z|[+-]\d\d:?\d\d)\[[\w/+-]+\])$/;
/** A date as JavaScript writes it when it becomes a text. */
const JS_TEXT = /^[A-Za-z]{3} ([A-Za-z]{3}) (\d\d) (\d{4}) (\d\d:\d\d:\d\d) GMT([+-]\d{4})(?: \([^)]*\))?$/;
const LONGEST = 100;
/**
 * Numbers up to this count seconds, until the year 5138. Larger ones count milliseconds, microseconds or nanoseconds.
 */
const LARGEST_SECONDS = 1e11;
const FURTHEST_AHEAD = 23 * 3_600_000;
const YEAR_ZERO = Date.parse('0000-01-01T00:00:00Z');
const YEAR_10000 = Date.UTC(10_000, 0, 1);
const END_OF_2020 = Date.UTC(2021, 0, 1);

/** The offset of a zone in minutes. NaN if no zone can have it. */
function zoneMinutes(zone: string | undefined): number {
  if (zone === undefined || !/^[+-]/.test(zone)) return 0;
  const digits = zone.replace(':', '');
  const [hours, minutes] = [Number(digits.slice(1, 3)), Number(digits.slice(3, 5) || 0)];
  if (hours > 23 || minutes > 59) return Number.NaN;
  return (digits[0] === '-' ? -1 : 1) * (hours * 60 + minutes);
}

/** The instant in milliseconds. NaN for dates that do not exist, such as the 30th of February. */
function instant(parts: number[], milliseconds: number, zone: string | undefined): number {
  const [year, month, day, hour, minute, second] = parts as [number, number, number, number, number, number];
  if (month < 1 || month > 12 || hour > 24 || minute > 59 || second > 60) return Number.NaN;
  // 24:00 is the end of a day. 24:01 does not exist.
  if (hour === 24 && minute + second + milliseconds > 0) return Number.NaN;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return Number.NaN;
  const time = ((hour * 60 + minute - zoneMinutes(zone)) * 60 + second) * 1000 + milliseconds;
  return date.getTime() + time;
}

const ZERO = 0x30;
const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Two digits as a number. NaN if they are not digits. */
function twoDigits(text: string, at: number): number {
  const [tens, ones] = [text.charCodeAt(at) - ZERO, text.charCodeAt(at + 1) - ZERO];
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}

/**
 * Reads the spelling that nearly all clients use, `2026-01-02T03:04:05.678Z`. NaN for all others, which `parseIso`
 * then reads.
 */
function parseUsualIso(text: string): number {
  if (text.length !== 24 || text[23] !== 'Z' || text[10] !== 'T' || text[19] !== '.') return Number.NaN;
  if (text[4] !== '-' || text[7] !== '-' || text[13] !== ':' || text[16] !== ':') return Number.NaN;
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2);
  const [month, day] = [twoDigits(text, 5), twoDigits(text, 8)];
  const [hour, minute, second] = [twoDigits(text, 11), twoDigits(text, 14), twoDigits(text, 17)];
  const milliseconds = twoDigits(text, 20) * 10 + (text.charCodeAt(22) - ZERO);
  // The 29th of February is left to `parseIso`, too.
  const plain =
    year >= 1000 && day >= 1 && day <= (DAYS[month - 1] ?? 0) && hour <= 23 && minute <= 59 && second <= 59;
  if (!plain || !(text.charCodeAt(22) - ZERO >= 0 && text.charCodeAt(22) - ZERO <= 9)) return Number.NaN;
  return Date.UTC(year, month - 1, day, hour, minute, second, milliseconds);
}

const DAY = 86_400_000;

/** The first day of week 1, a Monday: the week that the 4th of January is in. */
function firstMonday(year: number): number {
  const fourth = Date.parse(`${String(year).padStart(4, '0')}-01-04T00:00:00Z`);
  return fourth - ((new Date(fourth).getUTCDay() + 6) % 7) * DAY;
}

/** Writes a date by its week or by the day of its year as a date of the calendar. Undefined: there is no such date. */
function calendarText(text: string): string | undefined {
  const byWeek = WEEK_DATE.exec(text);
  const match = byWeek ?? ORDINAL_DATE.exec(text);
  if (!match) return undefined;
  const [whole, year, hyphen, number] = match as unknown as [string, string, string, string];
  const count = Number(number) - 1;
  const [first, end] = byWeek
    ? [firstMonday(Number(year)), firstMonday(Number(year) + 1)]
    : [
        Date.parse(`${year}-01-01T00:00:00Z`),
        Date.parse(`${String(Number(year) + 1).padStart(4, '0')}-01-01T00:00:00Z`),
      ];
  const day = first + (byWeek ? count * 7 + Number(match[4] ?? 1) - 1 : count) * DAY;
  if (!(day >= first && day < end) || !(day < YEAR_10000)) return undefined;
  const date = new Date(day).toISOString().slice(0, 10);
  return (hyphen === '' ? date.replaceAll('-', '') : date) + text.slice(whole.length);
}

/** Reads ISO 8601: a date, or a date with a time. Without a zone, the time is in UTC. */
export function parseIso(text: string): number {
  const usual = parseUsualIso(text);
  if (!Number.isNaN(usual)) return usual;
  const plain = ISO.exec(text) ?? BASIC_ISO.exec(text);
  const calendar = plain ? undefined : calendarText(text);
  const match = calendar === undefined ? plain : (ISO.exec(calendar) ?? BASIC_ISO.exec(calendar));
  if (!match) return Number.NaN;
  const [, year, month, day, hour, minute, second, fraction, zone] = match;
  const milliseconds = fraction === undefined ? 0 : Math.floor(Number(`0.${fraction}`) * 1000 + 1e-6);
  return instant([year, month, day, hour ?? 0, minute ?? 0, second ?? 0].map(Number), milliseconds, zone);
}

function parseRfc2822(text: string): number {
  const match = RFC_2822.exec(text);
  if (!match) return Number.NaN;
  const [, day, month, year, hour, minute, second, zone] = match;
  const index = MONTHS.indexOf((month as string).toLowerCase());
  return instant([year, index + 1, day, hour, minute, second ?? 0].map(Number), 0, zone);
}

/** Reads any spelling of a moment that clients use. Returns milliseconds, or NaN if the value is not a moment. */
export function parseMoment(value: unknown): number {
  if (typeof value === 'number') return fromNumber(value);
  if (typeof value !== 'string') return Number.NaN;
  const text = value.trim();
  if (text.length > LONGEST) return Number.NaN;
  const iso = parseIso(text);
  if (!Number.isNaN(iso)) return iso;
  if (NUMERIC.test(text)) return fromNumber(Number(text));
  const [, moment, zone = 'Z'] = NAMED_ZONE.exec(text) ?? [];
  const named = moment === undefined ? Number.NaN : parseIso(moment + zone);
  return Number.isNaN(named) ? parseRfc2822(text.replace(JS_TEXT, '$2 $1 $3 $4 $5')) : named;
}

function fromNumber(value: number): number {
  if (!Number.isFinite(value)) return Number.NaN;
  let unit = 1000;
  while (Math.abs(value) * unit >= LARGEST_SECONDS * 1000 && unit > 1e-6) unit /= 1000;
  return Math.floor(value * unit);
}

/** When the client sent the request, by its own clock: the body's `sent_at`, or else the query's `_`. */
export function readSentAt(bodySentAt: unknown, querySentAt: string | undefined): number | undefined {
  const fromBody = parseMoment(bodySentAt);
  if (!Number.isNaN(fromBody)) return fromBody;
  const fromQuery = querySentAt !== undefined && /^\d{10,16}$/.test(querySentAt) ? Number(querySentAt) : 0;
  // A clock that is years behind is not used for corrections.
  return fromQuery >= END_OF_2020 && fromQuery < YEAR_10000 ? fromQuery : undefined;
}

export interface EventTime {
  milliseconds: number;
  /** What was wrong with the client's time. */
  problem?: 'timestamp_unreadable' | 'timestamp_in_future' | 'timestamp_out_of_range';
}

export interface Clocks {
  now: number;
  sentAt: number | undefined;
}

/** When the event happened, by our clock. The client's clock is off by as much as its sent_at. */
export function resolveTimestamp(
  given: { timestamp: unknown; offset: unknown; ignoreSentAt: boolean },
  { now, sentAt }: Clocks,
): EventTime {
  if (typeof given.offset === 'number' && Number.isFinite(given.offset)) {
    return clamp(Math.floor(now - given.offset), now);
  }
  if (given.timestamp === undefined || given.timestamp === null || given.timestamp === '') {
    return { milliseconds: now };
  }
  const moment = parseMoment(given.timestamp);
  if (Number.isNaN(moment)) return { milliseconds: now, problem: 'timestamp_unreadable' };
  const skew = sentAt === undefined || given.ignoreSentAt ? 0 : sentAt - now;
  return clamp(moment - skew, now);
}

function clamp(milliseconds: number, now: number): EventTime {
  if (milliseconds < YEAR_ZERO || milliseconds >= YEAR_10000) {
    return { milliseconds: 0, problem: 'timestamp_out_of_range' };
  }
  if (milliseconds > now + FURTHEST_AHEAD) return { milliseconds: now, problem: 'timestamp_in_future' };
  return { milliseconds };
}
