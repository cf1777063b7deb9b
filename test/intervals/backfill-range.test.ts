import { describe, expect, test } from '@jest/globals';
import { BackfillRangeError, type Cadence, readBackfillRange } from '../../intervals/index.ts';

const now = Date.parse('2026-02-10T12:00:00Z');
const cadence = (interval: Cadence['interval'], given: Partial<Cadence> = {}): Cadence => ({
  interval,
  timezone: 'UTC',
  offsetHour: 0,
  offsetDay: 0,
  ...given,
});
const hour = cadence('hour');
const day = cadence('day', { timezone: 'America/New_York', offsetHour: 5 });
const week = cadence('week', { timezone: 'Asia/Kathmandu', offsetDay: 3, offsetHour: 20 });

const range = (start_at: unknown, end_at: unknown, of: Cadence = hour) => {
  const { start, end } = readBackfillRange(of, { start_at, end_at }, { now, openStart: true, openEnd: true });
  return [start, end].map((one) => (one === null ? null : new Date(one).toISOString()));
};

describe('ranges of backfills', () => {
  test.each([
    [
      '2026-01-01T00:00:00Z',
      '2026-01-01T02:00:00+00:00',
      '2026-01-01T00:00:00.000Z',
      '2026-01-01T02:00:00.000Z',
    ],
    [
      '2026-01-01 02:00+02:00',
      '2026-01-01T02:00:00.5-0130',
      '2026-01-01T00:00:00.000Z',
      '2026-01-01T03:30:00.500Z',
    ],
    ['2026-01-01T00Z', '2026-01-01T01:02:03.456789Z', '2026-01-01T00:00:00.000Z', '2026-01-01T01:02:03.456Z'],
  ])('instants for short intervals: %s to %s', (from, to, start, end) => {
    expect(range(from, to)).toEqual([start, end]);
  });

  test('dates for days and weeks, at the local hour', () => {
    expect(range('2026-01-05', '2026-01-08', day)).toEqual([
      '2026-01-05T10:00:00.000Z',
      '2026-01-08T10:00:00.000Z',
    ]);
    expect(range('2026-01-07', '2026-01-21', week)).toEqual([
      '2026-01-07T14:15:00.000Z',
      '2026-01-21T14:15:00.000Z',
    ]);
    // The clocks jump over the hour.
    expect(
      range('2025-03-09', '2025-03-10', cadence('day', { timezone: 'America/New_York', offsetHour: 2 })),
    ).toEqual(['2025-03-09T07:00:00.000Z', '2025-03-10T06:00:00.000Z']);
  });

  test('open ends, where they are allowed', () => {
    expect(range(null, '2026-01-08T00:00Z')).toEqual([null, '2026-01-08T00:00:00.000Z']);
    expect(range('2026-01-08T00:00Z', undefined)).toEqual(['2026-01-08T00:00:00.000Z', null]);
    expect(() => readBackfillRange(hour, { end_at: '2026-01-08T00:00Z' }, { now })).toThrow(
      'Backfilling from the beginning of time is not enabled for this team.',
    );
    expect(() => readBackfillRange(hour, { start_at: '2026-01-08T00:00Z' }, { now })).toThrow(
      'Backfilling a BatchExport with no end date is not allowed',
    );
  });

  const ok = '2026-01-01T00:00:00Z';
  test.each<[Cadence, unknown, unknown, string, string]>([
    [hour, 'soon', ok, 'start_at', 'Input soon is not a valid ISO formatted datetime.'],
    [hour, 5, ok, 'start_at', 'Input 5 is not a valid ISO formatted datetime.'],
    [hour, {}, ok, 'start_at', 'Input {} is not a valid ISO formatted datetime.'],
    [
      hour,
      ok,
      '2026-02-30T00:00:00Z',
      'end_at',
      'Input 2026-02-30T00:00:00Z is not a valid ISO formatted datetime.',
    ],
    [
      hour,
      ok,
      '2026-01-01T24:00:00Z',
      'end_at',
      'Input 2026-01-01T24:00:00Z is not a valid ISO formatted datetime.',
    ],
    [hour, '2026-01-01T00:00:00', ok, 'start_at', 'Input 2026-01-01T00:00:00 is naive.'],
    [hour, '2026-01-01', ok, 'start_at', 'Input 2026-01-01 is naive.'],
    [hour, ok, ok, 'start_at', "The initial backfill datetime 'start_at' must be before 'end_at'"],
    [
      ...[hour, ok, '2026-02-10T14:00:00+01:00', 'end_at'],
      "The provided 'end_at' (2026-02-10T14:00:00+01:00) is in the future",
    ] as [Cadence, unknown, unknown, string, string],
    [day, 'x', '2026-01-01', 'start_at', "Input 'x' is not a valid ISO formatted date."],
    [day, '2026-02-29', '2026-03-01', 'start_at', "Input '2026-02-29' is not a valid ISO formatted date."],
    [
      ...[day, '2026-01-01T00:00:00+00:00', '2026-01-02', 'start_at'],
      "Input '2026-01-01T00:00:00+00:00' is not a valid ISO formatted date. Daily or weekly batch export backfills expect only the date component, but a time was included.",
    ] as [Cadence, unknown, unknown, string, string],
    [
      ...[week, '2026-01-07', '2026-01-15', 'end_at'],
      'Input 2026-01-15 is not on the correct day of the week for this batch export. 2026-01-15 is a Thursday but this batch export is configured to run weekly on Wednesday.',
    ] as [Cadence, unknown, unknown, string, string],
    [
      ...[day, '2026-02-01', '2026-02-11', 'end_at'],
      "The provided 'end_at' (2026-02-11T05:00:00-05:00) is in the future",
    ] as [Cadence, unknown, unknown, string, string],
    [
      day,
      '2026-02-02',
      '2026-02-02',
      'start_at',
      "The initial backfill datetime 'start_at' must be before 'end_at'",
    ],
  ])('%j refuses %j to %j', (of, from, to, field, message) => {
    let refused: unknown;
    try {
      range(from, to, of);
    } catch (error) {
      refused = error;
    }
    expect(refused).toBeInstanceOf(BackfillRangeError);
    expect(refused).toMatchObject({ field, message });
  });
});
