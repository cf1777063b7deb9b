import { expect, jest, test } from '@jest/globals';
import { type Cadence, intervalsWithin, scheduleTimes } from '../../intervals/index.ts';
import type { Clocks } from '../../values/tzif.ts';
import { rounds } from '../support/rounds.ts';

const [HOUR, DAY] = [3_600_000, 86_400_000];

/** When clocks show the hour of a cadence, by looking at each stretch between two changes. */
function shown(
  { interval, offsetHour, offsetDay }: Cadence,
  clocks: Clocks,
  from: number,
  to: number,
): number[] {
  const found: number[] = [];
  const stretches = [{ at: Number.NEGATIVE_INFINITY, offset: clocks.first }, ...clocks.changes];
  for (const [index, { at, offset }] of stretches.entries()) {
    const [start, end] = [Math.max(from, at), Math.min(to, stretches[index + 1]?.at ?? to)];
    const first = Math.ceil((start + offset - offsetHour * HOUR) / DAY) * DAY + offsetHour * HOUR;
    for (let wall = first; wall - offset < end; wall += DAY) {
      if (interval === 'week' && new Date(wall).getUTCDay() !== offsetDay) continue;
      found.push(wall - offset);
    }
  }
  return found;
}

const ZONES = Intl.supportedValuesOf('timeZone');
/** Zones whose clocks change at unusual times or by unusual steps, in the years in which they did. */
const UNUSUAL: [string, number][] = [
  ['Australia/Lord_Howe', 2026],
  ['America/Scoresbysund', 2020],
  ['America/Asuncion', 2016],
  ['Africa/Casablanca', 2026],
  ['Africa/El_Aaiun', 2026],
  ['Africa/Cairo', 2023],
  ['Asia/Beirut', 2024],
  ['Asia/Gaza', 2026],
  ['Antarctica/Troll', 2026],
  ['Pacific/Apia', 2007],
  ['Pacific/Kwajalein', 1990],
  ['Pacific/Kiritimati', 1990],
  ['Asia/Pyongyang', 2015],
  ['Asia/Almaty', 2020],
  ['America/Sao_Paulo', 2012],
  ['America/Caracas', 2010],
];

test('the clocks of a schedule show the hour exactly when an interval ends, once for each', () => {
  const some = ZONES.filter((_, index) => index % rounds(40, 1) === 0).map((zone) => [zone, 2026] as const);
  for (const [timezone, year] of [...UNUSUAL, ...some]) {
    const range = { start: Date.UTC(year, 0, 1), end: Date.UTC(year + 10, 0, 1) };
    const cadences: Cadence[] = [0, 1, 2, 3, 12, 23].map((offsetHour) => ({
      ...{ interval: 'day', timezone, offsetHour, offsetDay: 0 },
    }));
    for (const offsetHour of [2, 0]) cadences.push({ interval: 'week', timezone, offsetHour, offsetDay: 0 });
    for (const cadence of cadences) {
      const { clocks, calendars } = scheduleTimes(cadence, Date.UTC(year, 5, 1));
      expect(calendars).toHaveLength(1);
      const around = { start: range.start - 14 * DAY, end: range.end + 14 * DAY };
      const ends = [...intervalsWithin(cadence, around)].map(({ end }) => end);
      expect([cadence, shown(cadence, clocks as Clocks, range.start, range.end)]).toEqual([
        cadence,
        ends.filter((one) => one >= range.start && one < range.end),
      ]);
    }
  }
});

test('the clocks change once a year at most, and are as short as the zone allows', () => {
  const cadence: Cadence = { interval: 'day', timezone: 'Europe/Berlin', offsetHour: 2, offsetDay: 0 };
  const times = scheduleTimes(cadence, Date.parse('2026-01-01T00:00Z'));
  expect(scheduleTimes(cadence, Date.parse('2026-12-31T23:59Z'))).toEqual(times);
  expect(scheduleTimes(cadence, Date.parse('2027-01-01T00:00Z'))).not.toEqual(times);
  expect(scheduleTimes({ ...cadence, offsetHour: 12 }, Date.UTC(2026, 0, 1)).clocks?.changes).toHaveLength(
    20,
  );
  expect(scheduleTimes({ ...cadence, timezone: 'Asia/Tokyo' }, 0).clocks).toEqual({
    first: 9 * HOUR,
    changes: [],
  });
  expect(scheduleTimes({ ...cadence, timezone: 'UTC' }, 0)).not.toHaveProperty('clocks');
  expect(scheduleTimes({ ...cadence, interval: 'hour' }, 0)).not.toHaveProperty('clocks');
});

test('a seam does not change when the schedule fires', () => {
  const cadence: Cadence = { interval: 'day', timezone: 'Europe/Oslo', offsetHour: 2, offsetDay: 0 };
  const at = Date.UTC(2026, 5, 1);
  const cut = { ...cadence, timezone: 'Europe/Rome', seam: Date.parse('2026-03-29T00:30Z') };
  expect(scheduleTimes(cut, at).clocks).toEqual(scheduleTimes(cadence, at).clocks);
});

test('the clocks of a cadence are read once', () => {
  const read = jest.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts');
  for (const timezone of ['Europe/Vienna', 'America/Denver']) {
    read.mockClear();
    const ask = (offsetHour: number, offsetDay: number) =>
      scheduleTimes({ interval: 'week', timezone, offsetHour, offsetDay }, Date.UTC(2026, 10, 22));
    ask(0, 0);
    expect(read.mock.calls.length).toBeLessThan(1_800);
    read.mockClear();
    for (let hour = 0; hour < 24; hour += 1) for (let day = 0; day < 7; day += 1) ask(hour, day);
    // The search for the changes of the zone alone takes more than half a thousand.
    expect(read.mock.calls.length).toBeLessThan(24 * 7 * 250);
    read.mockClear();
    for (let hour = 0; hour < 24; hour += 1) for (let day = 0; day < 7; day += 1) ask(hour, day);
    expect(read).not.toHaveBeenCalled();
  }
  read.mockRestore();
});
