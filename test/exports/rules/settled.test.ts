import { describe, expect, test } from '@jest/globals';
import { healthOf, recentWindow } from '../../../exports/reads/health.ts';
import type { IntervalMarks, IntervalOutcome } from '../../../exports/rows/run-lists.ts';
import { cadenceOfRow } from '../../../exports/rules/cadence.ts';
import type { Pause } from '../../../exports/rules/due.ts';
import { intervalStates, type MappedRow } from '../../../exports/rules/interval-states.ts';
import { settledAt } from '../../../exports/rules/settled.ts';
import { type Interval, intervalsWithin } from '../../../intervals/index.ts';
import { hourly } from '../hourly-row.ts';

const HOUR = 3_600_000;
const NOW = Date.parse('2026-06-10T12:07:00Z');
const iso = (instant: number) => new Date(instant).toISOString();
const WELL = { missing: 0, late: 0, differs: 0, lag_intervals: 0, lag_seconds: 0 };

type Row = MappedRow & { seam_at?: string | null };
type Status = 'Completed' | 'Running' | 'Failed';

/** Numbers from 0 to 1 that look random, and are the same each time. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

/** The runs of each interval, as the quick look and the closer look get them. */
function seen(runs: readonly { interval: Interval; statuses: readonly Status[] }[]) {
  const marksOf = (...wanted: Status[]) =>
    new Set(
      runs
        .filter(({ statuses }) => statuses.some((one) => wanted.includes(one)))
        .map(({ interval }) => `${interval.start}-${interval.end}`),
    );
  const marks: IntervalMarks = {
    completed: marksOf('Completed'),
    active: marksOf('Running'),
    ended: marksOf('Failed'),
  };
  const outcomes = runs.map(
    ({ interval, statuses }): IntervalOutcome => ({
      data_interval_start: iso(interval.start),
      data_interval_end: iso(interval.end),
      runs: statuses.length,
      completed: statuses.includes('Completed'),
      active: statuses.includes('Running'),
      ...{ run_id: 'run', status: statuses.at(-1) as Status, latest_error: null },
      completed_run_id: statuses.includes('Completed') ? 'run' : null,
      ...{ records_completed: 1, records_failed: 0, records_total_count: 1, content_hash: null },
      manifest_key: null,
    }),
  );
  return { marks, outcomes };
}

function compare(
  row: Row,
  runs: readonly { interval: Interval; statuses: readonly Status[] }[],
  pauses: Pause[],
) {
  const { marks, outcomes } = seen(runs);
  const entries = intervalStates(row, { outcomes, checks: [], pauses }, recentWindow(row, NOW), NOW);
  return { settled: settledAt(NOW)(row, { marks, pauses }), health: healthOf(entries) };
}

const ROWS: Record<string, Row> = {
  hourly,
  'every five minutes': { ...hourly, interval: 'every 5 minutes' },
  'daily in a zone with summer time': {
    ...{ ...hourly, interval: 'day', timezone: 'Europe/Berlin', interval_offset: 3 * 3_600 },
  },
  'weekly with a seam': { ...hourly, interval: 'week', seam_at: '2026-05-20T07:00:00.000Z' },
};

describe.each(Object.entries(ROWS))('an export that runs %s', (_name, row) => {
  const intervals = [...intervalsWithin(cadenceOfRow(row), recentWindow(row, NOW))];

  test('is settled if the closer look finds nothing wrong, and only then', () => {
    const random = numbers(7);
    const pick = <T>(...from: T[]) => from[Math.floor(random() * from.length)] as T;
    const found = { true: 0, false: 0 };
    for (let round = 0; round < 400; round += 1) {
      const odd = Math.floor(random() * 3);
      const from = NOW - random() * 3 * HOUR;
      const pauses: Pause[] = pick<Pause[]>(
        [],
        [],
        [{ paused_at: iso(from), resumed_at: pick(null, iso(from + random() * HOUR)) }],
      );
      const given: Row = {
        ...row,
        paused: pauses.some((one) => one.resumed_at === null) || random() < 0.1,
        start_at: pick(null, null, iso((intervals.at(-2) as Interval).end)),
        end_at: pick(null, null, iso((intervals.at(-3) as Interval).end)),
        scheduled_from: pick(row.scheduled_from, iso((intervals.at(-2) as Interval).start)),
      };
      const deviating = new Set(
        Array.from({ length: odd }, () =>
          random() < 0.6 ? intervals.length - 1 : Math.floor(random() * intervals.length),
        ),
      );
      const runs = intervals.flatMap((interval, index) => {
        const statuses = deviating.has(index)
          ? pick<Status[]>([], ['Failed'], ['Running'], ['Failed', 'Running'], ['Completed', 'Failed'])
          : (['Completed'] as Status[]);
        return statuses.length > 0 ? [{ interval, statuses }] : [];
      });
      const { settled, health } = compare(given, runs, pauses);
      expect({ round, settled, health }).toEqual({
        round,
        settled: JSON.stringify(health) === JSON.stringify(WELL),
        health,
      });
      found[`${settled}`] += 1;
    }
    // Both answers were among the cases.
    expect(Math.min(found.true, found.false)).toBeGreaterThan(40);
  });

  test('is not settled if one interval has no run, wherever it lies', () => {
    for (const left of [intervals[0], intervals[Math.floor(intervals.length / 2)], intervals.at(-2)]) {
      const runs = intervals
        .filter((one) => one !== left)
        .map((interval) => ({ interval, statuses: ['Completed'] as const }));
      expect(compare(row, runs, []).settled).toBe(false);
    }
  });
});
