import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  alignOutward,
  type Cadence,
  cadenceOf,
  countWithin,
  INTERVAL_LENGTHS,
  type Interval,
  intervalAt,
  intervalEndingAt,
  intervalsWithin,
  jitterOf,
  lastComplete,
  MAX_JITTER,
  offsetSeconds,
} from '../../intervals/index.ts';
import { alignInward, isEdge } from '../../intervals/intervals.ts';
import { shownIn } from '../values/shown-in.ts';

const nextInterval = (cadence: Cadence, { end }: Interval) => intervalAt(cadence, end);
const previousInterval = (cadence: Cadence, { start }: Interval) => intervalAt(cadence, start - 1);
const DAY = 86_400_000;
const HOUR = 3_600_000;
const daily = (timezone: string, offsetHour = 0): Cadence => ({
  interval: 'day',
  timezone,
  offsetHour,
  offsetDay: 0,
});
const at = (text: string) => Date.parse(text);
const iso = ({ start, end }: Interval) => [start, end].map((one) => new Date(one).toISOString().slice(0, 16));

describe('intervals, by eye', () => {
  test.each<[string, Partial<Cadence>, string, string, string]>([
    ['every 5 minutes', {}, '2026-01-31T12:34Z', '2026-01-31T12:30', '2026-01-31T12:35'],
    ['every 15 minutes', {}, '2026-01-31T12:45Z', '2026-01-31T12:45', '2026-01-31T13:00'],
    // Hours are those of UTC wherever the export is.
    ['hour', { timezone: 'Asia/Kolkata' }, '2026-01-31T12:34Z', '2026-01-31T12:00', '2026-01-31T13:00'],
    ['day', {}, '2026-01-31T12:34Z', '2026-01-31T00:00', '2026-02-01T00:00'],
    ['day', { offsetHour: 13 }, '2026-01-31T12:34Z', '2026-01-30T13:00', '2026-01-31T13:00'],
    ['day', { timezone: 'Asia/Kolkata' }, '2026-01-31T12:34Z', '2026-01-30T18:30', '2026-01-31T18:30'],
    // 23 and 25 hours.
    ['day', { timezone: 'Europe/Berlin' }, '2026-03-29T12:00Z', '2026-03-28T23:00', '2026-03-29T22:00'],
    ['day', { timezone: 'Europe/Berlin' }, '2026-10-25T12:00Z', '2026-10-24T22:00', '2026-10-25T23:00'],
    // 02:00 does not exist on 29 March: the day begins when the clocks jump, at 03:00.
    [
      ...['day', { timezone: 'Europe/Berlin', offsetHour: 2 }, '2026-03-29T12:00Z'],
      ...['2026-03-29T01:00', '2026-03-30T00:00'],
    ] as [string, Partial<Cadence>, string, string, string],
    // 02:00 comes twice on 25 October: the day begins at the second.
    [
      ...['day', { timezone: 'Europe/Berlin', offsetHour: 2 }, '2026-10-25T12:00Z'],
      ...['2026-10-25T01:00', '2026-10-26T01:00'],
    ] as [string, Partial<Cadence>, string, string, string],
    // Havana sets its clocks back from 01:00 to 00:00.
    ['day', { timezone: 'America/Havana' }, '2026-11-01T05:30Z', '2026-11-01T05:00', '2026-11-02T05:00'],
    // Nuuk's clocks jump from 23:00 to midnight.
    [
      ...['day', { timezone: 'America/Nuuk', offsetHour: 23 }, '2026-03-29T12:00Z'],
      ...['2026-03-29T01:00', '2026-03-30T00:00'],
    ] as [string, Partial<Cadence>, string, string, string],
    // Half an hour, from 02:00 to 02:30.
    [
      ...['day', { timezone: 'Australia/Lord_Howe', offsetHour: 2 }, '2026-10-04T00:00Z'],
      ...['2026-10-03T15:30', '2026-10-04T15:00'],
    ] as [string, Partial<Cadence>, string, string, string],
    // Samoa had no 30 December 2011: the 29th, and then the 31st.
    [
      ...['day', { timezone: 'Pacific/Apia', offsetHour: 5 }, '2011-12-30T12:00Z'],
      ...['2011-12-29T15:00', '2011-12-30T15:00'],
    ] as [string, Partial<Cadence>, string, string, string],
    ['week', {}, '2026-01-31T12:34Z', '2026-01-25T00:00', '2026-02-01T00:00'],
    ['week', { offsetDay: 6 }, '2026-01-31T12:34Z', '2026-01-31T00:00', '2026-02-07T00:00'],
    [
      ...['week', { timezone: 'America/New_York', offsetDay: 1, offsetHour: 9 }, '2026-03-10T00:00Z'],
      ...['2026-03-09T13:00', '2026-03-16T13:00'],
    ] as [string, Partial<Cadence>, string, string, string],
    // A week that begins on the Friday that Samoa had not.
    [
      ...['week', { timezone: 'Pacific/Apia', offsetDay: 5 }, '2011-12-31T00:00Z'],
      ...['2011-12-30T10:00', '2012-01-05T10:00'],
    ] as [string, Partial<Cadence>, string, string, string],
  ])('%s %j at %s', (interval, given, instant, start, end) => {
    const cadence = { timezone: 'UTC', offsetHour: 0, offsetDay: 0, interval, ...given } as Cadence;
    expect(iso(intervalAt(cadence, at(instant)))).toEqual([start, end]);
  });

  test('days of a month with a change of the clocks', () => {
    const month = { start: at('2026-03-01T00:00+01:00'), end: at('2026-04-01T00:00+02:00') };
    const days = [...intervalsWithin(daily('Europe/Berlin'), month)];
    expect(days).toHaveLength(31);
    expect(days.filter(({ start, end }) => end - start !== DAY).map(iso)).toEqual([
      ['2026-03-28T23:00', '2026-03-29T22:00'],
    ]);
  });

  test('what is over, what comes next, what was before', () => {
    const cadence = daily('UTC');
    const noon = at('2026-01-31T12:00Z');
    expect(iso(lastComplete(cadence, noon))).toEqual(['2026-01-30T00:00', '2026-01-31T00:00']);
    // An interval is over at its end.
    expect(iso(lastComplete(cadence, at('2026-01-31T00:00Z')))).toEqual([
      '2026-01-30T00:00',
      '2026-01-31T00:00',
    ]);
    const today = intervalAt(cadence, noon);
    expect(iso(nextInterval(cadence, today))).toEqual(['2026-02-01T00:00', '2026-02-02T00:00']);
    expect(iso(previousInterval(cadence, today))).toEqual(['2026-01-30T00:00', '2026-01-31T00:00']);
  });

  test('ranges are aligned outward and inward', () => {
    const hourly: Cadence = { interval: 'hour', timezone: 'UTC', offsetHour: 0, offsetDay: 0 };
    const range = { start: at('2026-01-31T12:20Z'), end: at('2026-01-31T14:40Z') };
    expect(iso(alignOutward(hourly, range))).toEqual(['2026-01-31T12:00', '2026-01-31T15:00']);
    expect(iso(alignInward(hourly, range))).toEqual(['2026-01-31T13:00', '2026-01-31T14:00']);
    const small = { start: at('2026-01-31T12:20Z'), end: at('2026-01-31T12:40Z') };
    expect(countWithin(hourly, small)).toBe(0);
    expect([...intervalsWithin(hourly, small)]).toEqual([]);
    const empty = alignInward(hourly, small);
    expect(empty.start).toBe(empty.end);
  });

  test('the nominal time of a schedule tells the interval that ends, or that none does', () => {
    const cadence = daily('America/New_York', 1);
    // 01:00 comes twice on 1 November: the schedule fires at both.
    expect(intervalEndingAt(cadence, at('2026-11-01T05:00Z'))).toBeNull();
    expect(intervalEndingAt(cadence, at('2026-11-01T06:00Z'))).toEqual({
      start: at('2026-10-31T05:00Z'),
      end: at('2026-11-01T06:00Z'),
    });
  });
});

const zones = fc.constantFrom(...Intl.supportedValuesOf('timeZone'), 'UTC');
const cadences: fc.Arbitrary<Cadence> = fc.record({
  interval: fc.constantFrom(...INTERVAL_LENGTHS),
  timezone: zones,
  offsetHour: fc.integer({ min: 0, max: 23 }),
  offsetDay: fc.integer({ min: 0, max: 6 }),
});
const instants = fc.integer({ min: Date.UTC(1970, 0, 10), max: Date.UTC(2040, 0, 1) });

/** Instants at which the clocks of a zone were or will be changed, found without the code under test. */
function changes(timezone: string): number[] {
  const offset = (instant: number) => {
    const clock = shownIn(instant, timezone);
    return Date.UTC(clock.year, clock.month - 1, clock.day, clock.hour, clock.minute, clock.second) - instant;
  };
  const found: number[] = [];
  const step = 60 * DAY;
  for (let from = Date.UTC(1970, 0, 10); from < Date.UTC(2040, 0, 1); from += step) {
    if (offset(from) === offset(from + step)) continue;
    let [low, high] = [from, from + step];
    while (high - low > 1000) {
      const middle = low + Math.floor((high - low) / 2000) * 1000;
      if (offset(middle) === offset(from)) low = middle;
      else high = middle;
    }
    found.push(high);
  }
  return found;
}

const known = new Map<string, number[]>();
function changesOf(timezone: string): number[] {
  const found = known.get(timezone) ?? changes(timezone);
  known.set(timezone, found);
  return found;
}

/** Whether all is well around an instant: intervals meet each other, and each contains what it should. */
function checkAround(cadence: Cadence, instant: number): void {
  const interval = intervalAt(cadence, instant);
  const { start, end } = interval;
  expect(start).toBeLessThanOrEqual(instant);
  expect(end).toBeGreaterThan(instant);
  // Whatever instant of it is asked for, it is the same interval, and its neighbours are others.
  for (const other of [start, end - 1, start + Math.floor((end - start) / 2)]) {
    expect(intervalAt(cadence, other)).toEqual(interval);
  }
  const next = nextInterval(cadence, interval);
  const previous = previousInterval(cadence, interval);
  expect(next.start).toBe(end);
  expect(previous.end).toBe(start);
  expect(previousInterval(cadence, next)).toEqual(interval);
  expect(nextInterval(cadence, previous)).toEqual(interval);
  expect(isEdge(cadence, start)).toBe(true);
  expect(isEdge(cadence, end - 1)).toBe(end - 1 === start);
  expect(intervalEndingAt(cadence, end)).toEqual(interval);
  expect(lastComplete(cadence, instant)).toEqual(previous);
  if (cadence.interval !== 'day' && cadence.interval !== 'week') return;
  const days = (end - start) / DAY;
  const expected = cadence.interval === 'day' ? 1 : 7;
  expect(Math.abs(days - expected)).toBeLessThanOrEqual(25 / 24);
  // It begins on its local hour, unless the clocks jumped over that.
  const shown = shownIn(start, cadence.timezone);
  const before = shownIn(start - 1, cadence.timezone);
  const onTheHour = shown.hour === cadence.offsetHour && shown.minute === 0 && shown.second === 0;
  const elapsed = (clock: typeof shown) =>
    Date.UTC(
      clock.year,
      clock.month - 1,
      clock.day,
      clock.hour,
      clock.minute,
      clock.second,
      clock.millisecond,
    );
  expect(onTheHour || elapsed(shown) - elapsed(before) > 1).toBe(true);
}

describe('intervals of all zones, 1970 to 2040', () => {
  test('tile time', () => {
    fc.assert(fc.property(cadences, instants, checkAround), { numRuns: 1_000 });
  });

  test('tile time where the clocks are changed', () => {
    const days = cadences.filter(({ interval }) => interval === 'day' || interval === 'week');
    const pick = fc.nat();
    fc.assert(
      fc.property(days, pick, fc.integer({ min: -30 * HOUR, max: 30 * HOUR }), (cadence, which, away) => {
        const known = changesOf(cadence.timezone);
        if (known.length === 0) return;
        const change = known[which % known.length] as number;
        checkAround(cadence, change + away);
        checkAround(cadence, change);
        checkAround(cadence, change - 1);
      }),
      { numRuns: 150 },
    );
  });

  test('no zone changes its offset twice within what the code takes for one change', () => {
    // Sampled: all of them take minutes. Those with the nearest changes are always among them.
    const sample = ['America/Recife', 'America/Noronha', 'Africa/Casablanca', 'Pacific/Apia', 'Asia/Manila'];
    const all = Intl.supportedValuesOf('timeZone');
    for (let i = 0; i < 12; i += 1) sample.push(all[Math.floor(Math.random() * all.length)] as string);
    for (const zone of sample) {
      const formatter = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
      let last = Number.NEGATIVE_INFINITY;
      let known = '';
      for (let day = Date.UTC(1970, 0, 1); day < Date.UTC(2040, 0, 1); day += DAY) {
        const offset = formatter.format(day).split('GMT')[1] ?? '';
        if (known !== '' && offset !== known) {
          if (day - last < 5 * DAY)
            throw new Error(`${zone} changes twice near ${new Date(day).toISOString()}`);
          last = day;
        }
        known = offset;
      }
    }
  });

  test('those within a range: as many as counted, each after the other, nothing left out', () => {
    const parts = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(cadences, instants, parts, (cadence, start, part) => {
        const longest = { day: 40 * DAY, week: 400 * DAY }[cadence.interval as string] ?? DAY;
        const range = { start, end: start + Math.floor(part * longest) };
        const found = [...intervalsWithin(cadence, range)];
        expect(countWithin(cadence, range)).toBe(found.length);
        const inward = alignInward(cadence, range);
        const outward = alignOutward(cadence, range);
        expect(outward.start).toBeLessThanOrEqual(start);
        expect(outward.end).toBeGreaterThanOrEqual(range.end);
        expect(isEdge(cadence, outward.start) && isEdge(cadence, outward.end)).toBe(true);
        expect(found[0]?.start ?? inward.start).toBe(inward.start);
        expect(found.at(-1)?.end ?? inward.end).toBe(inward.end);
        const whole = found.map((one) => intervalAt(cadence, one.start));
        expect(found).toEqual(whole);
        expect(found.filter((one, index) => index > 0 && one.start !== found[index - 1]?.end)).toEqual([]);
        // Not one more would have fitted.
        expect(intervalAt(cadence, inward.end).end).toBeGreaterThan(range.end);
      }),
      { numRuns: 200 },
    );
  });

  test('with a seam there is one more edge, and everything else is as without', () => {
    const parts = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(cadences, instants, parts, parts, parts, (plain, start, part, where, when) => {
        const longest = { day: 20 * DAY, week: 100 * DAY }[plain.interval as string] ?? DAY / 2;
        const range = { start, end: start + Math.floor(part * longest) };
        const seam = Math.floor(start + (where * 1.4 - 0.2) * part * longest);
        const cadence = { ...plain, seam };
        const found = [...intervalsWithin(cadence, range)];
        expect(countWithin(cadence, range)).toBe(found.length);
        expect(found).toEqual(found.map((one) => intervalAt(cadence, one.start)));
        expect(found.filter((one, index) => index > 0 && one.start !== found[index - 1]?.end)).toEqual([]);
        const outward = alignOutward(cadence, range);
        const edges = new Set(
          [...intervalsWithin(plain, alignOutward(plain, range))].flatMap((one) => [one.start, one.end]),
        );
        if (outward.start <= seam && seam <= outward.end) edges.add(seam);
        for (const { start: from, end: to } of intervalsWithin(cadence, outward))
          expect([edges.has(from), edges.has(to)]).toEqual([true, true]);
        const at = Math.floor(start + when * part * longest);
        const one = intervalAt(cadence, at);
        expect(one.start <= at && at < one.end).toBe(true);
        expect(isEdge(cadence, seam)).toBe(true);
        expect(intervalEndingAt(cadence, seam)?.end).toBe(seam);
        expect(lastComplete(cadence, seam).end).toBe(seam);
      }),
      { numRuns: 200 },
    );
  });

  test('counting leaves out the dates that a zone has not', () => {
    const december = (offset: string, until: string) => ({
      start: at(`2011-12-01T00:00${offset}`),
      end: at(`2012-01-01T00:00${until}`),
    });
    expect([...intervalsWithin(daily('Pacific/Apia'), december('-10:00', '+14:00'))]).toHaveLength(30);
    expect(countWithin(daily('Pacific/Apia'), december('-10:00', '+14:00'))).toBe(30);
    expect(countWithin(daily('Pacific/Auckland'), december('+13:00', '+13:00'))).toBe(31);
    const long = { start: at('1970-01-01T00:00Z'), end: at('2030-01-01T00:00Z') };
    expect(countWithin(daily('Pacific/Kwajalein', 3), long)).toBe(
      [...intervalsWithin(daily('Pacific/Kwajalein', 3), long)].length,
    );
  });
});

test('the offsets are one number, and back', () => {
  fc.assert(
    fc.property(cadences, (cadence) => {
      const back = cadenceOf(cadence.interval, cadence.timezone, offsetSeconds(cadence));
      expect(back).toEqual({ ...cadence, offsetDay: cadence.interval === 'week' ? cadence.offsetDay : 0 });
    }),
  );
  expect(offsetSeconds({ interval: 'week', timezone: 'UTC', offsetDay: 2, offsetHour: 3 })).toBe(183_600);
});

test('the jitter of an export is always the same, and those of many are spread over a minute', () => {
  const ids = Array.from(
    { length: 6_000 },
    (_, n) => `018f0000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`,
  );
  const parts = new Array<number>(10).fill(0);
  const jitters = ids.map(jitterOf);
  expect(ids.map(jitterOf)).toEqual(jitters);
  for (const jitter of jitters) {
    const part = Math.min(9, Math.floor(jitter / 6_000));
    parts[part] = (parts[part] as number) + 1;
  }
  expect(jitters.filter((one) => one < 0 || one > MAX_JITTER || !Number.isInteger(one))).toEqual([]);
  for (const count of parts) expect(Math.abs(count - 600)).toBeLessThan(120);
});
