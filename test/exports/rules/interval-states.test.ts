import { describe, expect, test } from '@jest/globals';
import { healthOf } from '../../../exports/reads/health.ts';
import type { CheckRow } from '../../../exports/rows/checks.ts';
import type { IntervalOutcome } from '../../../exports/rows/run-lists.ts';
import type { RunRow } from '../../../exports/rows/runs.ts';
import {
  type IntervalEntry,
  intervalStates,
  type Known,
  type MappedRow,
} from '../../../exports/rules/interval-states.ts';
import { hourly } from '../hourly-row.ts';

const at = (text: string) => Date.parse(`2026-03-10T${text}Z`);
const iso = (instant: number) => new Date(instant).toISOString();
const HOUR = 3_600_000;

function outcome(start: number, given: Partial<IntervalOutcome> = {}, end = start + HOUR): IntervalOutcome {
  const completed = given.completed ?? given.status === 'Completed';
  return {
    data_interval_start: iso(start),
    data_interval_end: iso(end),
    runs: 1,
    active: false,
    run_id: 'run',
    status: 'Completed',
    latest_error: null,
    completed_run_id: completed ? 'run' : null,
    records_completed: completed ? 7 : null,
    records_failed: null,
    records_total_count: null,
    content_hash: null,
    manifest_key: null,
    ...given,
    completed,
  };
}

function check(start: number, given: Partial<CheckRow> = {}): CheckRow {
  return {
    data_interval_start: iso(start),
    data_interval_end: iso(start + HOUR),
    state: 'same',
    run_id: 'run',
    source_rows: 7,
    content_hash: null,
    problem: null,
    repairs: 0,
    repaired_at: null,
    checked_at: iso(start + 2 * HOUR),
    ...given,
  };
}

const nothing: Known = { outcomes: [], checks: [], pauses: [] };
const completed = (start: number) => outcome(start, { status: 'Completed' });

/** The state of the hour from 12:00 on, as of `now`. */
function noon(now: string, known: Partial<Known> = {}, row: Partial<MappedRow> = {}): IntervalEntry {
  const window = { start: at('12:00:00'), end: at('13:00:00') };
  const entries = intervalStates({ ...hourly, ...row }, { ...nothing, ...known }, window, at(now));
  expect(entries).toHaveLength(1);
  return entries[0] as IntervalEntry;
}

describe('an interval without a run', () => {
  test.each([
    ['13:00:00', 'running'],
    ['13:02:00', 'running'],
    ['13:02:01', 'late'],
    ['15:00:00', 'late'],
    ['15:00:01', 'missing'],
  ])('at %s it is %s', (now, state) => {
    expect(noon(now)).toMatchObject({ state, run_id: null, status: null, runs: 0 });
  });

  test('before its end it is not there', () => {
    const window = { start: at('12:00:00'), end: at('13:00:00') };
    expect(intervalStates(hourly, nothing, window, at('12:59:59'))).toEqual([]);
  });

  test('that is missing says so', () => {
    expect(noon('20:00:00').problem).toBe('There was no run.');
  });
});

describe('an interval with runs', () => {
  const failed = outcome(at('12:00:00'), { status: 'Failed', latest_error: 'denied' });
  const active = outcome(at('12:00:00'), { status: 'Running', active: true });
  const again = { ...completed(at('12:00:00')), status: 'Running' as const, active: true };
  test.each<[string, string, IntervalOutcome, string]>([
    ['a run completed it', '20:00:00', completed(at('12:00:00')), 'done'],
    ['a run is at work', '13:05:00', active, 'running'],
    ['a run is at work for long', '13:20:01', active, 'late'],
    ['a run is at work for days: it is never missing', '23:00:00', active, 'late'],
    ['a completed one is done again', '23:00:00', again, 'running'],
    ['its run has just failed', '13:01:00', failed, 'late'],
    ['its run failed long ago', '15:00:01', failed, 'missing'],
    [
      'a completed one was done again, and failed',
      '20:00:00',
      { ...completed(at('12:00:00')), status: 'Failed' },
      'done',
    ],
  ])('%s', (_, now, one, state) => {
    expect(noon(now, { outcomes: [one] }).state).toBe(state);
  });

  test('says what is wrong with it, and which run it was', () => {
    expect(noon('20:00:00', { outcomes: [failed] })).toMatchObject({
      problem: 'denied',
      run_id: 'run',
      status: 'Failed',
      records_completed: null,
    });
    expect(noon('20:00:00', { outcomes: [completed(at('12:00:00'))] })).toEqual({
      start: '2026-03-10T12:00:00.000Z',
      end: '2026-03-10T13:00:00.000Z',
      state: 'done',
      run_id: 'run',
      status: 'Completed',
      runs: 1,
      records_completed: 7,
      source_rows: null,
      checked_at: null,
      problem: null,
    });
  });

  test('a run of another interval that ends at the same time does not count', () => {
    const day = outcome(at('13:00:00') - 24 * HOUR, { status: 'Completed' }, at('13:00:00'));
    expect(noon('20:00:00', { outcomes: [day] }).state).toBe('missing');
  });

  test('a run over everything up to a later time did it', () => {
    const whole = { id: 'whole', status: 'Completed', data_interval_end: iso(at('18:00:00')) } as RunRow;
    const early = { ...whole, data_interval_end: iso(at('12:30:00')) };
    expect(noon('20:00:00', { wholeRuns: [whole] })).toMatchObject({ state: 'done', run_id: 'whole' });
    expect(noon('20:00:00', { wholeRuns: [early] }).state).toBe('missing');
  });
});

describe('what was found when it was checked', () => {
  const start = at('12:00:00');
  test.each<[string, Partial<CheckRow>, string]>([
    ['the same', {}, 'done'],
    ['something else', { state: 'differs', problem: '8 rows, 7 were exported' }, 'differs'],
    ['nothing at the destination', { state: 'missing', problem: 'no manifest' }, 'differs'],
    ['rows past their retention', { state: 'expired' }, 'done'],
    ['something else, for an earlier run', { state: 'differs', run_id: 'before' }, 'done'],
  ])('%s', (_, given, state) => {
    const known = { outcomes: [completed(start)], checks: [check(start, given)] };
    expect(noon('20:00:00', known).state).toBe(state);
  });

  test('is shown', () => {
    const known = {
      outcomes: [completed(start)],
      checks: [check(start, { state: 'differs', source_rows: 8, problem: '8 rows, 7 were exported' })],
    };
    expect(noon('20:00:00', known)).toMatchObject({
      source_rows: 8,
      checked_at: '2026-03-10T14:00:00.000Z',
      problem: '8 rows, 7 were exported',
    });
  });
});

describe('what the schedule has not to run', () => {
  const pause = (from: string, to: string | null) => ({
    pauses: [{ paused_at: iso(at(from)), resumed_at: to === null ? null : iso(at(to)) }],
  });
  test.each<[string, Partial<Known>, Partial<MappedRow>, string]>([
    ['it was made later', {}, { scheduled_from: iso(at('13:00:00')) }, 'excluded'],
    ['it was made in the middle of it', {}, { scheduled_from: iso(at('12:59:59')) }, 'missing'],
    ['start_at is later', {}, { start_at: iso(at('13:00:01')) }, 'excluded'],
    ['start_at is its end: the schedule fires then', {}, { start_at: iso(at('13:00:00')) }, 'missing'],
    ['end_at is in the middle of it', {}, { end_at: iso(at('12:30:00')) }, 'excluded'],
    ['end_at is its end', {}, { end_at: iso(at('13:00:00')) }, 'missing'],
    ['deleted before its end', {}, { deleted_at: iso(at('12:30:00')) }, 'excluded'],
    ['paused over its end', pause('12:30:00', '13:30:00'), {}, 'excluded'],
    ['paused right after its end', pause('13:00:00', null), { paused: true }, 'missing'],
    ['resumed right before its end', pause('11:00:00', '12:59:59'), {}, 'missing'],
    ['resumed at its end', pause('11:00:00', '13:00:00'), {}, 'excluded'],
    ['paused since', pause('12:00:00', null), { paused: true }, 'excluded'],
    ['paused from the beginning', {}, { paused: true }, 'excluded'],
  ])('%s', (_, known, row, state) => {
    expect(noon('20:00:00', known, row).state).toBe(state);
  });

  test('is done all the same if somebody filled it', () => {
    const known = { outcomes: [completed(at('12:00:00'))] };
    expect(noon('20:00:00', known, { scheduled_from: iso(at('19:00:00')) }).state).toBe('done');
    const failed = { outcomes: [outcome(at('12:00:00'), { status: 'Failed' })] };
    expect(noon('20:00:00', failed, { scheduled_from: iso(at('19:00:00')) }).state).toBe('excluded');
  });
});

test('days are as long as the clocks of the zone make them', () => {
  const daily: MappedRow = {
    ...hourly,
    interval: 'day',
    timezone: 'Europe/Berlin',
    interval_offset: 2 * 3600,
  };
  const window = { start: Date.parse('2026-03-27T00:00:00Z'), end: Date.parse('2026-03-31T00:00:00Z') };
  // The clocks jump from 02:00 to 03:00 on the 29th: that day begins at the jump, an hour is gone.
  const bounds = ['2026-03-27T01:00', '2026-03-28T01:00', '2026-03-29T01:00', '2026-03-30T00:00'].map(
    (text) => `${text}:00.000Z`,
  );
  const outcomes = [0, 2].map((index) =>
    outcome(
      Date.parse(bounds[index] as string),
      { status: 'Completed' },
      Date.parse(bounds[index + 1] as string),
    ),
  );
  const entries = intervalStates(daily, { ...nothing, outcomes }, window, Date.parse('2026-03-30T06:00:01Z'));
  expect(entries.map(({ start, end, state }) => [start, end, state])).toEqual([
    [bounds[0], bounds[1], 'done'],
    [bounds[1], bounds[2], 'missing'],
    [bounds[2], bounds[3], 'done'],
  ]);
});

describe('health', () => {
  const states = (...given: IntervalEntry['state'][]) =>
    given.map(
      (state, index) =>
        ({
          state,
          start: iso(at('00:00:00') + index * HOUR),
          end: iso(at('01:00:00') + index * HOUR),
        }) as IntervalEntry,
    );
  test.each<[IntervalEntry['state'][], ReturnType<typeof healthOf>]>([
    [[], { missing: 0, late: 0, differs: 0, lag_intervals: 0, lag_seconds: 0 }],
    [['excluded', 'done', 'running'], { missing: 0, late: 0, differs: 0, lag_intervals: 0, lag_seconds: 0 }],
    [['done', 'late', 'running'], { missing: 0, late: 1, differs: 0, lag_intervals: 2, lag_seconds: 7200 }],
    [
      ['missing', 'done', 'differs'],
      { missing: 1, late: 0, differs: 1, lag_intervals: 1, lag_seconds: 10_800 },
    ],
    [['done', 'differs'], { missing: 0, late: 0, differs: 1, lag_intervals: 0, lag_seconds: 0 }],
  ])('%j', (given, health) => {
    expect(healthOf(states(...given))).toEqual(health);
  });
});
