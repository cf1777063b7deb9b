import { describe, expect, test } from '@jest/globals';
import { millisecondsOf } from '../../../api/moment.ts';
import { bucketLabel, bucketOf, bucketsWithin } from '../../../api/time-buckets.ts';
import type { BatchExportRow, PauseRow } from '../../../exports/rows/batch-exports.ts';
import { missedWhilePaused } from '../../../exports/rules/missed.ts';
import { pickInterval } from '../../../exports/rules/pick-interval.ts';

const at = (text: string) => Date.parse(`2026-03-02T${text}Z`);
const rowOf = (fields: Partial<BatchExportRow>) =>
  ({
    ...{ interval: 'hour', timezone: 'UTC', interval_offset: 0, created_at: '2026-01-01T00:00:00Z' },
    ...{ start_at: null, end_at: null, last_paused_at: null },
    ...fields,
  }) as BatchExportRow;

describe('what was missed while an export was paused', () => {
  const missed = (fields: Partial<BatchExportRow>, now: string, pauses: PauseRow[] = []) => {
    const range = missedWhilePaused(rowOf(fields), at(now), pauses);
    return (
      range && [range.start, range.end].map((one) => new Date(one as number).toISOString().slice(11, 16))
    );
  };
  const since = (time: string) => ({ last_paused_at: `2026-03-02T${time}Z` });

  test.each<[string, Partial<BatchExportRow>, string, string[] | null]>([
    ['the interval of the pause and those after it', since('10:30:00'), '13:10:00', ['10:00', '13:00']],
    ['nothing within one interval', since('10:30:00'), '10:50:00', null],
    ['the one that was just over when it was paused', since('10:00:30'), '11:10:00', ['09:00', '11:00']],
    ['not that one later', since('10:01:30'), '11:10:00', ['10:00', '11:00']],
    [
      'not what ends before start_at',
      { ...since('08:30:00'), start_at: '2026-03-02T10:30:00Z' },
      '12:10:00',
      ['10:00', '12:00'],
    ],
    [
      'what ends at start_at',
      { ...since('08:30:00'), start_at: '2026-03-02T10:00:00Z' },
      '12:10:00',
      ['09:00', '12:00'],
    ],
    [
      'not what ends after end_at',
      { ...since('08:30:00'), end_at: '2026-03-02T10:30:00Z' },
      '12:10:00',
      ['08:00', '10:00'],
    ],
    [
      'all since it was made, if it was never paused',
      { created_at: '2026-03-02T09:30:00Z' },
      '11:10:00',
      ['09:00', '11:00'],
    ],
  ])('%s', (_name, fields, now, range) => {
    expect(missed(fields, now)).toEqual(range);
  });

  test.each<[string, Partial<BatchExportRow>, [string, string | null][], string[]]>([
    ['the pause itself, where last_paused_at says nothing', {}, [['10:30:00', null]], ['10:00', '13:00']],
    [
      'the pause itself, where the export went on since last_paused_at',
      since('07:30:00'),
      [
        ['07:30:00', '08:30:00'],
        ['10:30:00', null],
      ],
      ['10:00', '13:00'],
    ],
    [
      'the pause itself, where last_paused_at lies in the future',
      since('23:00:00'),
      [['10:30:00', null]],
      ['10:00', '13:00'],
    ],
    ['last_paused_at, where it is earlier', since('08:30:00'), [['10:30:00', null]], ['08:00', '13:00']],
  ])('is reckoned from %s', (_name, fields, pauses, range) => {
    const rows = pauses.map(([from, to]) => ({
      paused_at: `2026-03-02T${from}Z`,
      resumed_at: to && `2026-03-02T${to}Z`,
    }));
    expect(missed(fields, '13:10:00', rows)).toEqual(range);
  });
});

test('an interval is named by its beginning, by its end, or is the last one that is over', () => {
  const row = rowOf({ interval: 'day', timezone: 'Europe/Berlin', interval_offset: 4 * 3600 });
  const day = { start: Date.parse('2026-03-29T02:00:00Z'), end: Date.parse('2026-03-30T02:00:00Z') };
  const now = Date.parse('2026-03-30T03:00:00Z');
  expect(pickInterval(row, {}, now)).toEqual(day);
  expect(pickInterval(row, { start_at: '2026-03-29T04:00:00+02:00' }, now)).toEqual(day);
  expect(pickInterval(row, { end_at: '2026-03-30T02:00:00Z' }, now)).toEqual(day);
  // The hour that the clocks jump over lies in the day before.
  expect(pickInterval(row, { end_at: '2026-03-29T02:00:00Z' }, now).start).toBe(
    Date.parse('2026-03-28T03:00:00Z'),
  );
});

describe('buckets', () => {
  test.each([
    ['hour', '2026-03-02T13:59:59.999Z', '2026-03-02T13:00:00.000Z', '2026-03-02T13:00'],
    ['day', '2026-03-02T23:59:59.999Z', '2026-03-02T00:00:00.000Z', '2026-03-02'],
    ['week', '2026-03-01T23:59:59.999Z', '2026-02-23T00:00:00.000Z', '2026-02-23'],
    ['week', '2026-03-02T00:00:00.000Z', '2026-03-02T00:00:00.000Z', '2026-03-02'],
    ['week', '1969-12-31T00:00:00.000Z', '1969-12-29T00:00:00.000Z', '1969-12-29'],
  ] as const)('the %s of %s begins %s', (bucket, instant, start, label) => {
    const found = bucketOf(bucket, Date.parse(instant));
    expect([new Date(found).toISOString(), bucketLabel(bucket, found)]).toEqual([start, label]);
  });

  test('are as many as there are, or too many', () => {
    expect(bucketsWithin('hour', at('10:30:00'), at('12:00:00'), 3)).toEqual(
      ['10:00:00', '11:00:00', '12:00:00'].map(at),
    );
    expect(bucketsWithin('hour', at('10:30:00'), at('12:00:00'), 2)).toBeUndefined();
    expect(bucketsWithin('day', at('10:30:00'), at('10:00:00'), 2)).toEqual([at('00:00:00')]);
    expect(bucketsWithin('hour', at('12:30:00'), at('10:00:00'), 2)).toEqual([]);
  });
});

test('a time without a zone is in UTC, wherever the server stands', () => {
  for (const text of [
    '2026-03-02T10:00',
    '2026-03-02T10:00:00',
    '2026-03-02T10:00Z',
    '2026-03-02T11:00+01:00',
  ]) {
    expect([text, millisecondsOf(text)]).toEqual([text, at('10:00:00')]);
  }
  expect(millisecondsOf('2026-03-02')).toBe(at('00:00:00'));
});
