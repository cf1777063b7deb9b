import { describe, expect, test } from '@jest/globals';
import { planBackfill, raisedStart } from '../../../exports/rules/backfill-plan.ts';
import type { MappedRow } from '../../../exports/rules/interval-states.ts';
import { hourly } from '../hourly-row.ts';

const at = (text: string) => Date.parse(`2026-${text}Z`);
const shown = (instant: number | null) => instant && new Date(instant).toISOString().slice(5, 16);

describe('what a backfill goes through', () => {
  const now = at('03-10T20:10:00');
  test.each<[string, string | null, string | null, [string | null, string, number]]>([
    ['whole hours', '2026-03-10T01:00:00Z', '2026-03-10T05:00:00Z', ['03-10T01:00', '03-10T05:00', 4]],
    [
      'edges are moved outward',
      '2026-03-10T01:30:00Z',
      '2026-03-10T04:01:00Z',
      ['03-10T01:00', '03-10T05:00', 4],
    ],
    [
      'the hour that is not over is left out',
      '2026-03-10T18:00:00Z',
      '2026-03-10T20:05:00Z',
      ['03-10T18:00', '03-10T20:00', 2],
    ],
    ['nothing is over', '2026-03-10T20:00:00Z', '2026-03-10T20:05:00Z', ['03-10T20:00', '03-10T20:00', 0]],
    ['up to now', '2026-03-10T18:00:00Z', null, ['03-10T18:00', '03-10T20:00', 2]],
    ['everything, as one run', null, '2026-03-10T04:30:00Z', [null, '03-10T04:30', 1]],
  ])('%s', (_, start_at, end_at, [start, end, total]) => {
    const plan = planBackfill(hourly, { start_at, end_at, adjusted_start_at: null }, now);
    expect([shown(plan.start), shown(plan.end), plan.total]).toEqual([start, end, total]);
  });

  test('days of the zone, 23 hours long where the clocks jump', () => {
    const daily: MappedRow = { ...hourly, interval: 'day', timezone: 'Europe/Berlin' };
    const backfill = {
      start_at: '2026-03-28T23:00:00Z',
      end_at: '2026-03-29T22:00:00Z',
      adjusted_start_at: null,
    };
    expect(planBackfill(daily, backfill, at('04-10T00:00:00'))).toEqual({
      start: at('03-28T23:00:00'),
      end: at('03-29T22:00:00'),
      total: 1,
    });
  });
});

describe('a start is raised to the first data', () => {
  const range = { start: at('01-01T00:00:00'), end: at('03-10T05:00:00') };
  test.each<[string, number | null, string, string]>([
    ['with data before the export was made', at('02-03T04:30:00'), '2026-03-01T00:00:00Z', '02-03T04:00'],
    [
      'with data in the range only later: scheduled intervals are kept',
      at('03-05T00:30:00'),
      '2026-03-01T00:00:00Z',
      '03-01T00:00',
    ],
    ['without data: the last interval is kept', null, '2026-12-01T00:00:00Z', '03-10T04:00'],
    ['with data from the beginning', at('01-01T00:10:00'), '2026-03-01T00:00:00Z', '01-01T00:00'],
  ])('%s', (_, first, scheduled_from, start) => {
    expect(shown(raisedStart({ ...hourly, scheduled_from }, range, first))).toBe(start);
  });
});
