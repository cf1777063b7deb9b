import { expect, jest, test } from '@jest/globals';
import { type Cadence, scheduleTimes } from '../../intervals/index.ts';
import { startOfDate, weekdayOf } from '../../intervals/intervals.ts';
import { cadenceZone } from '../../intervals/zone.ts';
import { rounds } from '../support/rounds.ts';

const [HOUR, DAY] = [3_600_000, 86_400_000];

/** The local times that a cadence fires at because the clocks skip the usual hour, by looking at each of its days. */
function skipped(cadence: Cadence, year: number): string[] {
  const zone = cadenceZone(cadence);
  const found: string[] = [];
  for (let date = Date.UTC(year, 0, 1) / DAY; date < Date.UTC(year + 10, 0, 1) / DAY; date += 1) {
    if (cadence.interval === 'week' && weekdayOf(date) !== cadence.offsetDay) continue;
    const start = startOfDate(cadence, date);
    const shown = start + zone.offsetAt(start);
    if (shown !== date * DAY + cadence.offsetHour * HOUR) found.push(new Date(shown).toISOString());
  }
  return found;
}

const MONTHS = 'JANUARY FEBRUARY MARCH APRIL MAY JUNE JULY AUGUST SEPTEMBER OCTOBER NOVEMBER DECEMBER'.split(
  ' ',
);
const listed = (cadence: Cadence, year: number): string[] =>
  scheduleTimes(cadence, Date.UTC(year, 5, 1))
    .calendars.filter((one) => one.year !== undefined)
    .map((one) =>
      new Date(
        Date.UTC(
          one.year as number,
          MONTHS.indexOf(one.month as string),
          one.dayOfMonth,
          one.hour,
          one.minute,
          one.second,
        ),
      ).toISOString(),
    );

const ZONES = Intl.supportedValuesOf('timeZone');
/** Zones whose clocks jump at unusual times or by unusual steps, in years when they did. */
const UNUSUAL: [string, number][] = [
  ['Australia/Lord_Howe', 2026],
  ['America/Scoresbysund', 2020],
  ['America/Asuncion', 2016],
  ['Africa/Casablanca', 2026],
  ['Africa/Cairo', 2023],
  ['Asia/Beirut', 2024],
  ['Pacific/Apia', 2007],
  ['Pacific/Kwajalein', 1990],
  ['Pacific/Kiritimati', 1990],
  ['Asia/Pyongyang', 2015],
  ['America/Sao_Paulo', 2012],
];

test('the times that the clocks skip are those that looking at each day finds', () => {
  const some = ZONES.filter((_, index) => index % rounds(60, 1) === 0).map((zone) => [zone, 2026] as const);
  for (const [timezone, year] of [...UNUSUAL, ...some]) {
    for (const offsetHour of [0, 1, 2, 3, 23]) {
      const daily: Cadence = { interval: 'day', timezone, offsetHour, offsetDay: 0 };
      expect([timezone, offsetHour, listed(daily, year)]).toEqual([
        timezone,
        offsetHour,
        skipped(daily, year),
      ]);
    }
    const weekly: Cadence = { interval: 'week', timezone, offsetHour: 2, offsetDay: 0 };
    expect([timezone, listed(weekly, year)]).toEqual([timezone, skipped(weekly, year)]);
  }
});

test('the clocks of a zone are read once for all cadences', () => {
  const read = jest.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts');
  for (const timezone of ['Europe/Vienna', 'America/Denver']) {
    read.mockClear();
    const ask = (offsetHour: number, offsetDay: number) =>
      scheduleTimes({ interval: 'week', timezone, offsetHour, offsetDay }, Date.UTC(2026, 10, 22));
    ask(0, 0);
    expect(read.mock.calls.length).toBeLessThan(1_200);
    read.mockClear();
    for (let hour = 0; hour < 24; hour += 1) for (let day = 0; day < 7; day += 1) ask(hour, day);
    expect(read).not.toHaveBeenCalled();
  }
  read.mockRestore();
});
