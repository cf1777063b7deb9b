import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { type Cadence, intervalEndingAt, intervalsWithin, scheduleTimes } from '../../intervals/index.ts';
import { isEdge } from '../../intervals/intervals.ts';
import { allocateNamespace } from '../support/temporal.ts';

let connection: Connection;
let client: Client;
let namespace: string;

beforeAll(async () => {
  const allocated = allocateNamespace();
  namespace = allocated.namespace;
  connection = await Connection.connect({ address: allocated.address });
  client = new Client({ connection, namespace });
});
afterAll(async () => {
  await connection?.close();
});

const seconds = (instant: number) => ({ seconds: Math.floor(instant / 1000) as unknown as Long });
type Long = import('long').default;

/** When the real Temporal fires a schedule of these times. */
async function firings(id: string, cadence: Cadence, from: number, to: number): Promise<number[]> {
  const { calendars, intervals, timezone } = scheduleTimes(cadence, from);
  const handle = await client.schedule.create({
    scheduleId: id,
    spec: { calendars, intervals, timezone },
    action: { type: 'startWorkflow', workflowType: 'none', taskQueue: 'none', args: [] },
    state: { paused: true },
  });
  const { startTime } = await connection.workflowService.listScheduleMatchingTimes({
    namespace,
    scheduleId: id,
    startTime: seconds(from),
    endTime: seconds(to),
  });
  await handle.delete();
  return startTime.map((one) => Number(one.seconds) * 1000);
}

const at = (text: string) => Date.parse(text);

describe('schedules fire when intervals end', () => {
  test.each<[string, Partial<Cadence>, string, string, number]>([
    ['every 5 minutes', {}, '2027-03-28T00:00Z', '2027-03-28T06:00Z', 0],
    ['every 15 minutes', { timezone: 'Asia/Kathmandu' }, '2027-01-01T00:00Z', '2027-01-02T00:00Z', 0],
    ['hour', { timezone: 'Asia/Kolkata' }, '2027-03-28T00:00Z', '2027-03-30T00:00Z', 0],
    ['day', {}, '2027-01-01T00:00Z', '2028-01-01T00:00Z', 0],
    ['day', { timezone: 'Europe/Berlin' }, '2027-01-01T00:00Z', '2028-01-01T00:00Z', 0],
    // Jumped over in March, twice in October; but Temporal fires at the second of the two only.
    ['day', { timezone: 'Europe/Berlin', offsetHour: 2 }, '2027-01-01T00:00Z', '2029-01-01T00:00Z', 0],
    ['day', { timezone: 'America/New_York', offsetHour: 2 }, '2027-01-01T00:00Z', '2028-01-01T00:00Z', 0],
    ['day', { timezone: 'America/New_York', offsetHour: 1 }, '2027-01-01T00:00Z', '2028-01-01T00:00Z', 1],
    // Jumps from 23:00 to midnight, from midnight to 01:00, by half an hour; back from 01:00 to midnight.
    ['day', { timezone: 'America/Nuuk', offsetHour: 23 }, '2027-01-01T00:00Z', '2028-01-01T00:00Z', 1],
    ['day', { timezone: 'Asia/Beirut' }, '2027-01-01T00:00Z', '2028-01-01T00:00Z', 0],
    ['day', { timezone: 'America/Santiago' }, '2027-01-01T00:00Z', '2028-01-01T00:00Z', 0],
    [
      ...['day', { timezone: 'Australia/Lord_Howe', offsetHour: 2 }, '2027-01-01T00:00Z'],
      ...['2028-01-01T00:00Z', 0],
    ] as [string, Partial<Cadence>, string, string, number],
    ['day', { timezone: 'America/Havana' }, '2027-01-01T00:00Z', '2028-01-01T00:00Z', 1],
    ['week', { offsetDay: 3, offsetHour: 7 }, '2027-01-01T00:00Z', '2028-01-01T00:00Z', 0],
    [
      ...['week', { timezone: 'Europe/Berlin', offsetHour: 2 }, '2027-01-01T00:00Z'],
      ...['2029-01-01T00:00Z', 0],
    ] as [string, Partial<Cadence>, string, string, number],
  ])('%s %j', async (interval, given, from, to, twice) => {
    const cadence = { timezone: 'UTC', offsetHour: 0, offsetDay: 0, interval, ...given } as Cadence;
    const fired = await firings(`times-${JSON.stringify(cadence)}`, cadence, at(from), at(to));
    const ends = [...intervalsWithin(cadence, { start: at(from), end: at(to) })].map((one) => one.end);
    // The first is the end of the interval that is cut by the beginning of the range.
    const expected = ends.filter((one) => one > at(from) && one <= at(to));
    const found = fired.filter((one) => isEdge(cadence, one) && one >= (expected[0] as number));
    expect(found).toEqual(expected);
    expect(found.map((one) => intervalEndingAt(cadence, one)?.end)).toEqual(expected);
    // What is fired besides is the first of two equal local times, and ends nothing.
    const besides = fired.filter((one) => !isEdge(cadence, one));
    expect(besides).toHaveLength(twice);
    expect(besides.map((one) => intervalEndingAt(cadence, one))).toEqual(besides.map(() => null));
  });
});

test('the times change once a year at most', () => {
  const cadence: Cadence = { interval: 'day', timezone: 'Europe/Berlin', offsetHour: 2, offsetDay: 0 };
  const times = scheduleTimes(cadence, at('2026-01-01T00:00Z'));
  expect(scheduleTimes(cadence, at('2026-12-31T23:59Z'))).toEqual(times);
  expect(times.calendars).toHaveLength(11);
  expect(times.calendars[1]).toEqual({
    year: 2026,
    month: 'MARCH',
    dayOfMonth: 29,
    hour: 3,
    minute: 0,
    second: 0,
    comment: 'the clocks jump over the usual hour',
  });
  expect(scheduleTimes({ ...cadence, offsetHour: 4 }, at('2026-01-01T00:00Z')).calendars).toHaveLength(1);
});
