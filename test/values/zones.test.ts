import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { ZONE_ALIASES } from '../../values/zone-aliases.ts';
import { isIanaZone } from '../../values/zones.ts';
import { allocateNamespace } from '../support/temporal.ts';

const CANONICAL = Intl.supportedValuesOf('timeZone');
const AT_ONCE = 20;

let connection: Connection;
let client: Client;
beforeAll(async () => {
  const { address, namespace } = allocateNamespace();
  connection = await Connection.connect({ address });
  client = new Client({ connection, namespace });
});
afterAll(async () => {
  await connection?.close();
});

/** What Temporal has against a schedule in this zone; undefined: nothing. */
async function refusalOf(timezone: string): Promise<string | undefined> {
  try {
    await client.schedule.create({
      scheduleId: `zone ${timezone}`,
      spec: { calendars: [{ hour: 1 }], timezone },
      action: { type: 'startWorkflow', workflowType: 'none', taskQueue: 'none', args: [] },
      state: { paused: true },
    });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

test('a name that is taken is one of which Temporal makes a schedule', async () => {
  const names = [...new Set([...CANONICAL, ...ZONE_ALIASES, 'UTC'])].filter((name) => isIanaZone(name));
  expect(names.length).toBeGreaterThan(550);
  const refused: string[] = [];
  for (let at = 0; at < names.length; at += AT_ONCE) {
    const some = names.slice(at, at + AT_ONCE);
    const answers = await Promise.all(some.map(refusalOf));
    refused.push(...answers.filter((one) => one !== undefined));
  }
  expect(refused).toEqual([]);
});

test.each(['europe/berlin', 'EUROPE/BERLIN', 'utc', 'PST', 'JST', 'IST', 'ACT', 'SystemV/AST4'])(
  '%s, which the platform takes and Temporal does not, is refused',
  async (name) => {
    expect(() => new Intl.DateTimeFormat('en', { timeZone: name })).not.toThrow();
    expect(await refusalOf(name)).toBe(`unknown time zone ${name}`);
    expect(isIanaZone(name)).toBe(false);
  },
);

test.each([
  '',
  'Z',
  '+02:00',
  'GMT+5',
  'Local',
  'Mars/Olympus',
  'Europe/Berlin ',
  'Asia/kolkata',
  'us/pacific',
])('"%s" is no zone', (name) => {
  expect(isIanaZone(name)).toBe(false);
});

test.each(['UTC', 'Europe/Berlin', 'Asia/Kolkata', 'Europe/Kyiv', 'US/Pacific', 'Etc/GMT+5', 'EST5EDT'])(
  '%s is one, whichever name the platform prefers for it',
  (name) => {
    expect(isIanaZone(name)).toBe(true);
  },
);
