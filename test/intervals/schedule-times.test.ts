import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { type Cadence, intervalEndingAt, intervalsWithin, scheduleTimes } from '../../intervals/index.ts';
import { schedulesWithClocks } from '../../schedules/exports/zone-data.ts';
import { tzif } from '../../values/tzif.ts';
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
  const { calendars, intervals, timezone, clocks } = scheduleTimes(cadence, from);
  const handle = await schedulesWithClocks(client, clocks && tzif(clocks)).create({
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
const iso = (instant: number) => new Date(instant).toISOString();

/** The ends of all intervals after `from`, up to `to`. */
const endsWithin = (cadence: Cadence, from: number, to: number): number[] =>
  [...intervalsWithin(cadence, { start: from - 14 * 86_400_000, end: to + 14 * 86_400_000 })]
    .map(({ end }) => end)
    .filter((end) => end > from && end <= to);

test.each<[string, Partial<Cadence>, string, string]>([
  ['every 5 minutes', {}, '2027-03-28T00:00Z', '2027-03-28T06:00Z'],
  ['every 15 minutes', { timezone: 'Asia/Kathmandu' }, '2027-01-01T00:00Z', '2027-01-02T00:00Z'],
  ['hour', { timezone: 'Asia/Kolkata' }, '2027-03-28T00:00Z', '2027-03-30T00:00Z'],
  ['day', {}, '2027-01-01T00:00Z', '2028-01-01T00:00Z'],
  ['week', { offsetDay: 3, offsetHour: 7 }, '2027-01-01T00:00Z', '2028-01-01T00:00Z'],
])('a schedule fires when intervals end: %s %j', async (interval, given, from, to) => {
  const cadence = { timezone: 'UTC', offsetHour: 0, offsetDay: 0, interval, ...given } as Cadence;
  const fired = await firings(`times-${JSON.stringify(cadence)}`, cadence, at(from), at(to));
  expect(fired).toEqual(endsWithin(cadence, at(from), at(to)));
});

/** Zones of both hemispheres: with odd steps and changes, half hours, no summer time, and clocks that go back in Ramadan. */
const ZONES = [
  ...['Africa/Casablanca', 'Africa/El_Aaiun', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'Asia/Kolkata'],
  ...['Asia/Tokyo', 'Asia/Beirut', 'Asia/Tehran', 'America/Nuuk', 'America/Santiago', 'America/Havana'],
  ...['America/New_York', 'America/St_Johns', 'America/Sao_Paulo', 'Europe/Berlin', 'Europe/Lisbon'],
  ...['Europe/Dublin', 'Pacific/Auckland', 'Pacific/Chatham', 'Pacific/Kiritimati', 'Antarctica/Troll'],
  ...['Africa/Cairo', 'Asia/Gaza'],
];

// Two years, with each hour at which one of these zones skips an hour or shows it twice.
test.each(ZONES)('days and weeks end when the server fires, for two years in %s', async (timezone) => {
  const [from, to] = [at('2026-06-01T00:00Z'), at('2028-06-01T00:00Z')];
  const cadences: Cadence[] = [0, 1, 2, 3, 23].map((offsetHour) => ({
    ...{ interval: 'day', timezone, offsetHour, offsetDay: 0 },
  }));
  for (const offsetHour of [0, 1, 2]) cadences.push({ interval: 'week', timezone, offsetHour, offsetDay: 0 });
  for (const cadence of cadences) {
    const fired = await firings(`zone-${JSON.stringify(cadence)}`, cadence, from, to);
    expect([cadence, fired.map(iso)]).toEqual([cadence, endsWithin(cadence, from, to).map(iso)]);
    expect(fired.map((one) => intervalEndingAt(cadence, one)?.end)).toEqual(fired);
  }
});
