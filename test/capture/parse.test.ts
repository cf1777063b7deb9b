import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { checkToken } from '../../api/public/project-keys.ts';
import { decodeBody } from '../../capture/decode/decode.ts';
import { HistoricalMigrationError } from '../../capture/parse/historical.ts';
import { type ParseContext, parseEvents, removeAddresses } from '../../capture/parse/parse.ts';
import { parseIso } from '../../capture/parse/timestamp.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const IP = '203.0.113.7';

function golden<T>(name: string): T[] {
  return JSON.parse(readFileSync(path.join(import.meta.dirname, 'golden', `${name}.json`), 'utf8'));
}

async function parse(body: unknown, context: Partial<ParseContext> = {}) {
  let serial = 0;
  const newUuid = () => {
    serial += 1;
    return `00000000-0000-7000-8000-${String(serial).padStart(12, '0')}`;
  };
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return parseEvents(await decodeBody({ bytes: Buffer.from(text) }), {
    now: NOW,
    ip: IP,
    newUuid,
    checkToken,
    ...context,
  });
}

const countsOf = (parsed: Awaited<ReturnType<typeof parse>>) =>
  Object.fromEntries([...parsed.notices.counts].map(([reason, notice]) => [reason, notice.count]));

interface FormCase {
  name: string;
  body: unknown;
  context?: Partial<ParseContext>;
  token: string;
  events: Record<string, unknown>[];
  skipped?: unknown[];
  changed?: Record<string, number>;
}

describe('forms of a body', () => {
  test.each(golden<FormCase>('forms'))(
    '$name',
    async ({ body, context, token, events, skipped, changed }) => {
      const parsed = await parse(body, context);
      expect(parsed.token).toBe(token);
      expect(
        parsed.events.map((event, index) => ({
          ...(events[index]?.uuid ? { uuid: event.uuid } : {}),
          event: event.event,
          distinct_id: event.distinct_id,
          ...(events[index]?.timestamp ? { timestamp: new Date(event.timestamp).toISOString() } : {}),
          properties: event.properties,
        })),
      ).toEqual(events);
      expect(parsed.notices.skipped).toEqual(skipped ?? []);
      if (changed) expect(countsOf(parsed)).toEqual(changed);
      for (const event of parsed.events) {
        expect(event).toMatchObject({ received_at: NOW, ip: IP, historical: false });
      }
    },
  );
});

interface TimeCase {
  name: string;
  event: Record<string, unknown>;
  sent_at?: string;
  sentAt?: string;
  query?: string;
  historical?: boolean;
  timestamp: string;
  changed?: string;
}

describe('time, at 2026-03-01T12:00:00Z', () => {
  test.each(golden<TimeCase>('time'))('$name', async (one) => {
    const body = {
      api_key: 'phc_a',
      sent_at: one.sent_at,
      sentAt: one.sentAt,
      historical_migration: one.historical,
      batch: [{ event: 'e', distinct_id: 'u', ...one.event }],
    };
    const parsed = await parse(body, { sentAt: one.query });
    expect(new Date(parsed.events[0]?.timestamp as number).toISOString()).toBe(one.timestamp);
    expect(Object.keys(countsOf(parsed))).toEqual(one.changed ? [one.changed] : []);
  });
});

interface TextCase {
  name: string;
  json: string;
  outer?: string;
  stored?: unknown;
  storedText?: string;
  cleaned?: boolean;
}

describe('text and numbers', () => {
  test.each(golden<TextCase>('text'))('$name', async ({ json, outer, stored, storedText, cleaned }) => {
    const set = outer ? `"$set":${outer},` : '';
    const text = `{"api_key":"phc_a","event":"e","distinct_id":"u",${set}"properties":${json}}`;
    const parsed = await parse(text, { ip: undefined });
    const properties = parsed.events[0]?.properties;
    if (stored !== undefined) expect(properties).toEqual(stored);
    if (storedText !== undefined) expect(JSON.stringify(properties)).toBe(storedText);
    expect(({} as Record<string, unknown>).admin).toBeUndefined();
    expect(countsOf(parsed)).toEqual(cleaned ? { text_cleaned: 1 } : {});
  });

  test('names and ids are cut at 200 characters, not through one', async () => {
    const long = '😀'.repeat(201);
    const parsed = await parse({ api_key: 'phc_a', event: long, distinct_id: `\u0000${long}` });
    expect(parsed.events[0]).toMatchObject({
      event: '😀'.repeat(200),
      distinct_id: `\ufffd${'😀'.repeat(199)}`,
    });
    expect(countsOf(parsed)).toEqual({ text_cleaned: 1, event_name_truncated: 1, distinct_id_truncated: 1 });
    const exact = await parse({ api_key: 'phc_a', event: '😀'.repeat(200), distinct_id: 'u' });
    expect(countsOf(exact)).toEqual({});
  });

  test('addresses can be removed', async () => {
    const { events } = await parse({
      api_key: 'phc_a',
      event: 'e',
      distinct_id: 'u',
      properties: { $ip: '1.2.3.4', a: 1 },
    });
    removeAddresses(events);
    expect(events[0]).toMatchObject({ ip: undefined, properties: { a: 1 } });
    expect(events[0]?.properties).not.toHaveProperty('$ip');
  });
});

describe('project keys', () => {
  test.each([
    [undefined, 'event submitted without an api_key'],
    [null, 'event submitted without an api_key'],
    ['  ', 'API key is not valid: empty'],
    [17, 'API key is not valid: not_a_string'],
    ['x'.repeat(65), 'API key is not valid: too_long'],
    ['phc_ü', 'API key is not valid: not_ascii'],
    ['phc_\u0000', 'API key is not valid: null_byte'],
    ['phx_secret', 'API key is not valid: personal_api_key'],
  ])('%j is refused', (token, message) => {
    expect(() => checkToken(token)).toThrow(message);
  });

  test('the keys of a list must agree', async () => {
    const event = { event: 'e', distinct_id: 'u' };
    await expect(
      parse([
        { ...event, api_key: 'phc_a' },
        { ...event, api_key: 'phc_b' },
      ]),
    ).rejects.toThrow('batch submitted with inconsistent api_key values');
    await expect(parse([event])).rejects.toThrow('event submitted without an api_key');
  });
});

describe('bodies that are refused', () => {
  test.each([
    [{ api_key: 'phc_a', batch: [] }, 'request holds no event'],
    [[], 'request holds no event'],
    [{ api_key: 'phc_a', batch: 'x' }, 'batch must be an array of events, it is a string'],
    [{ api_key: 'phc_a', event: 'e', distinct_id: 'u', properties: 3 }, 'properties not an object'],
  ])('%j', async (body, message) => {
    await expect(parse(body)).rejects.toThrow(message);
  });
});

describe('a historical migration', () => {
  const old = (hours: number) => new Date(NOW - hours * 3_600_000).toISOString();

  test('is refused whole, with every offence', async () => {
    const batch = [
      { event: 'good', distinct_id: 'u', timestamp: old(49) },
      { event: 'no time', distinct_id: 'u' },
      { event: 'young', distinct_id: 'u', timestamp: old(47) },
      { event: 'spelt', distinct_id: 'u', timestamp: 'Sat, 28 Feb 2020 11:00:00 +0100' },
      { event: 'number', distinct_id: 'u', timestamp: 1_572_366_410 },
      { event: 'nobody', timestamp: old(49) },
      { event: 'nobody', distinct_id: '', timestamp: old(49) },
      { event: 'nobody', distinct_id: ' \n', timestamp: old(49) },
      { event: 'nobody', distinct_id: null, properties: { distinct_id: '' } },
      'text',
    ];
    const failure = await parse({ api_key: 'phc_a', historical_migration: true, batch }).catch(
      (error) => error,
    );
    expect(failure).toBeInstanceOf(HistoricalMigrationError);
    expect(failure.message).toContain('9 of 10 events break its rules, nothing was stored');
    expect(failure.offences).toEqual([
      { index: 1, reason: 'timestamp is missing' },
      { index: 2, reason: `timestamp "${old(47)}" is less than 48 hours old` },
      { index: 3, reason: 'timestamp "Sat, 28 Feb 2020 11:00:00 +0100" is not ISO 8601' },
      { index: 4, reason: 'timestamp 1572366410 is not ISO 8601' },
      { index: 5, reason: 'distinct_id is missing or empty' },
      { index: 6, reason: 'distinct_id is missing or empty' },
      { index: 7, reason: 'distinct_id is missing or empty' },
      { index: 8, reason: 'distinct_id is missing or empty, timestamp is missing' },
      { index: 9, reason: 'not an object' },
    ]);
  });

  test('of which all is wrong lists the first offences and counts the others', async () => {
    const batch = Array.from({ length: 5_000 }, () => ({
      event: 'x'.repeat(50),
      timestamp: 'y'.repeat(1_000),
    }));
    const failure = await parse({ api_key: 'phc_a', historical_migration: true, batch }).catch(
      (error) => error,
    );
    expect(failure.message).toMatch(
      /5000 of 5000 events break .*; … The first 100 of them are in "errors"\.$/,
    );
    expect(failure.offences).toHaveLength(100);
    expect(JSON.stringify([failure.message, failure.offences]).length).toBeLessThan(20_000);
  });

  test('keeps the time that was checked, whatever offset an event names', async () => {
    const batch = [{ event: 'e', distinct_id: 'u', timestamp: old(49), offset: 0 }];
    const { events } = await parse({ api_key: 'phc_a', historical_migration: true, batch });
    expect(events.map(({ timestamp }) => timestamp)).toEqual([Date.parse(old(49))]);
  });

  test('has no events of times that cannot be stored', async () => {
    const batch = [{ event: 'e', distinct_id: 'u', timestamp: '-000001-01-01T00:00:00Z' }];
    const failure = await parse({ api_key: 'phc_a', historical_migration: true, batch }).catch(
      (error) => error,
    );
    expect(failure.offences).toEqual([
      { index: 0, reason: 'timestamp "-000001-01-01T00:00:00Z" is before the year 0' },
    ]);
  });

  test.each([true, 'true', 'True', ' TRUE ', 1, '1'])('is said by %j', async (value) => {
    const batch = [{ event: 'e', distinct_id: 'u', timestamp: old(49) }];
    const { events } = await parse({ api_key: 'phc_a', historical_migration: value, batch });
    expect(events.map(({ historical }) => historical)).toEqual([true]);
  });

  test.each([false, 'false', 'False', 0, '0', '', null])('is not meant by %j', async (value) => {
    const batch = [{ event: 'e', distinct_id: 'u' }];
    const { events } = await parse({ api_key: 'phc_a', historical_migration: value, batch });
    expect(events.map(({ historical }) => historical)).toEqual([false]);
  });

  test.each([
    ['yes', 'a string'],
    [2, 'a number'],
    [[], 'an array'],
    [{}, 'an object'],
  ])('is refused when it is said by %j: nobody knows what is meant', async (value, found) => {
    const batch = [{ event: 'e', distinct_id: 'u', timestamp: old(49) }];
    await expect(parse({ api_key: 'phc_a', historical_migration: value, batch })).rejects.toThrow(
      `failed to parse request: historical_migration must be true or false, it is ${found}`,
    );
  });

  test('is marked and keeps its order; 48 hours are enough', async () => {
    const batch = [48, 1000, 49].map((hours) => ({
      event: `${hours}`,
      distinct_id: 'u',
      timestamp: old(hours),
    }));
    const { events } = await parse({ api_key: 'phc_a', historical_migration: true, batch });
    expect(events.map(({ event, historical }) => [event, historical])).toEqual([
      ['48', true],
      ['1000', true],
      ['49', true],
    ]);
    const live = await parse({ api_key: 'phc_a', historical_migration: false, batch });
    expect(live.events.every((event) => !event.historical)).toBe(true);
  });
});

describe('the usual spelling of a time, read quickly', () => {
  test('is the same moment as by the language, for every day of four years and odd clock times', () => {
    const day = 86_400_000;
    for (let index = 0; index < 1_461; index += 1) {
      const text = new Date(Date.UTC(2023, 0, 1) + index * day + ((index * 7_919_317) % day)).toISOString();
      expect([text, parseIso(text)]).toEqual([text, Date.parse(text)]);
    }
  });

  test.each([
    '2023-02-29T00:00:00.000Z',
    '2023-02-30T00:00:00.000Z',
    '2023-04-31T00:00:00.000Z',
    '2023-00-01T00:00:00.000Z',
    '2023-13-01T00:00:00.000Z',
    '2023-01-00T00:00:00.000Z',
    '2023-01-01T25:00:00.000Z',
    '2023-01-01T00:60:00.000Z',
    '2023-01-01T00:00:00.00xZ',
    '2023-01-01T00:00:00.0/0Z',
    '2023-01-01T0:000:00.000Z',
    '20:3-01-01T00:00:00.000Z',
  ])('%s is no time', (text) => {
    expect(parseIso(text)).toBeNaN();
  });

  test('what is not so usual is left to the closer look', () => {
    expect(parseIso('2024-02-29T12:00:00.000Z')).toBe(Date.UTC(2024, 1, 29, 12));
    expect(parseIso('2023-06-30T23:59:60.000Z')).toBe(Date.UTC(2023, 6, 1));
    expect(parseIso('0099-01-01T00:00:00.000Z')).toBe(Date.parse('0099-01-01T00:00:00.000Z'));
  });
});
