import { describe, expect, test } from '@jest/globals';
import { PAID, trialsForFile } from './trial.ts';

const trials = trialsForFile();

type Event = { event: string; distinct_id: string; properties: Record<string, unknown> } | null;

/** Returns the event as a transformation leaves it. */
async function changed(id: string, properties: object, inputs = {}, event = {}): Promise<Event> {
  const tried = await trials.run(id, { inputs, event: { ...event, properties } });
  expect([tried.status, tried.errors]).toEqual(['success', []]);
  return tried.result as Event;
}
const propertiesOf = async (...args: Parameters<typeof changed>) => (await changed(...args))?.properties;

test('the blank transformation changes nothing', async () => {
  expect(await changed('template-blank-transformation', PAID.properties)).toMatchObject(PAID);
});

describe('geoip', () => {
  test('adds the location to the event and the person', async () => {
    const given = { $ip: '81.2.69.142', $set: { a: 1 }, $set_once: { b: 2 } };
    const london = {
      city_name: 'London',
      country_code: 'GB',
      continent_code: 'EU',
      time_zone: 'Europe/London',
    };
    const named = (prefix: string) =>
      Object.fromEntries(Object.entries(london).map(([key, value]) => [`${prefix}geoip_${key}`, value]));
    expect(await propertiesOf('template-geoip', given)).toMatchObject({
      ...named('$'),
      $geoip_latitude: expect.any(Number),
      $set: { a: 1, ...named('$') },
      $set_once: { b: 2, ...named('$initial_') },
    });
  });

  test.each([
    [{ $ip: '81.2.69.142', $geoip_disable: true }],
    [{ $ip: '127.0.0.1' }],
    [{ $ip: 'nonsense' }],
    [{}],
  ])('leaves %j as it is', async (given) => {
    expect(await propertiesOf('template-geoip', given)).toEqual(given);
  });
});

test.each([
  ['81.2.69.142', '81.2.69.0'],
  ['::ffff:81.2.69.142', '81.2.69.0'],
  ['2001:db8:85a3::8a2e:370:7334', '2001:db8:85a3::'],
  ['2001:DB8:1:2:3:4:5:6', '2001:db8:1::'],
  ['2001:db8::1', '2001:db8:0::'],
  ['fe80::1%eth0', 'fe80:0:0::'],
  ['::1', '0:0:0::'],
  ['nonsense', null],
])('the address %s becomes %s', async (ip, anonymous) => {
  expect(await propertiesOf('template-ip-anonymization', { $ip: ip, a: 1 })).toEqual({
    $ip: anonymous,
    a: 1,
  });
});

test('an event without an address stays as it is', async () => {
  expect(await propertiesOf('template-ip-anonymization', { a: 1 })).toEqual({ a: 1 });
});

test('nulls are removed', async () => {
  const given = { a: null, b: { c: null, d: 0, e: '' }, f: [null, 1] };
  expect(await propertiesOf('template-remove-null-properties', given)).toEqual({
    ...{ b: { d: 0, e: '' }, f: [1] },
  });
});

describe('bots', () => {
  const BOT = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)';
  const HUMAN = 'Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0';
  const ID = 'template-bot-detection';

  test('are dropped or marked', async () => {
    expect(await changed(ID, { $raw_user_agent: BOT })).toBeNull();
    expect(await changed(ID, { $raw_user_agent: HUMAN, $ip: '66.249.66.1' })).toBeNull();
    expect(await propertiesOf(ID, { $raw_user_agent: BOT }, { action: 'mark' })).toEqual({
      ...{ $raw_user_agent: BOT, $is_bot: true },
    });
  });

  test('others stay', async () => {
    const human = { $raw_user_agent: HUMAN, $ip: '81.2.69.142' };
    expect(await propertiesOf(ID, human)).toEqual(human);
    expect(await propertiesOf(ID, {})).toEqual({});
    const off = { filterKnownBotUserAgents: false, filterKnownBotIps: false };
    expect(await propertiesOf(ID, { $raw_user_agent: BOT, $ip: '66.249.66.1' }, off)).toBeDefined();
  });

  test('events of libraries for servers stay, unless own rules say otherwise', async () => {
    const given = { $raw_user_agent: 'python-requests/2.31', $ip: '66.249.66.1', $lib: 'posthog-python' };
    expect(await propertiesOf(ID, given)).toEqual(given);
    expect(await changed(ID, { ...given, $lib: 'web' })).toBeNull();
    expect(await changed(ID, given, { customBotPatterns: 'requests' })).toBeNull();
  });

  test('own rules hold', async () => {
    const human = { $raw_user_agent: HUMAN, $ip: '81.2.69.142' };
    expect(await changed(ID, human, { customBotPatterns: 'nothing, FIREFOX' })).toBeNull();
    expect(await changed(ID, human, { customIpPrefixes: '10.0.0.0/8, 81.2.69.0/24' })).toBeNull();
    expect(await changed(ID, {}, { keepUndefinedUseragent: 'No' })).toBeNull();
    expect(await propertiesOf(ID, { agent: HUMAN }, { userAgent: 'agent', customBotPatterns: ',' })).toEqual({
      agent: HUMAN,
    });
  });
});
