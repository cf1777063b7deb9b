// Days, weeks and dates without an offset are the statement's time zone's.
import { afterAll, describe, expect, test } from '@jest/globals';
import { createParser } from '../../../hog/parser/index.ts';
import { createSchema, printStatement, selection } from '../../../hog/sql/index.ts';
import { filterExpression, prepareMatcher, readFilters } from '../../../properties/index.ts';
import { ZONE_ALIASES } from '../../../values/zone-aliases.ts';
import { databaseZone, isIanaZone, zoneOf } from '../../../values/zones.ts';
import { PATIENCE } from '../../support/eventually.ts';
import { eventsDatabase } from './database.ts';
import { PROJECT } from './tables.ts';

const parser = createParser({ timeoutMs: PATIENCE });
afterAll(() => parser.close());
const database = eventsDatabase();

async function value(source: string, timezone: string): Promise<unknown> {
  const query = { ...selection({ table: 'events', select: [await parser.expression(source)] }), from: null };
  const statement = printStatement(query, { schema: createSchema('current'), projectId: PROJECT, timezone });
  return (await database.query(statement))[0]![0];
}

describe('Berlin', () => {
  test.each([
    ["toString(toStartOfDay(toDateTime('2026-03-15T23:30:00Z')))", '2026-03-16 00:00:00'],
    ["toString(toDate(toDateTime('2026-03-15T23:30:00Z')))", '2026-03-16'],
    ["toString(toDateTime('2026-03-15 12:00:00'))", '2026-03-15 12:00:00'],
    ["toUnixTimestamp(toDateTime('2026-03-15 12:00:00'))", '1773572400'],
    ["toHour(toDateTime('2026-07-15T12:00:00Z'))", '14'],
    // The day of the change has 23 hours: a day later is the same hour, 24 hours later is not.
    ["toString(addDays(toDateTime('2026-03-28 12:00:00'), 1))", '2026-03-29 12:00:00'],
    ["toString(addHours(toDateTime('2026-03-28 12:00:00'), 24))", '2026-03-29 13:00:00'],
    ["dateDiff('day', toDateTime('2026-03-15T22:30:00Z'), toDateTime('2026-03-15T23:30:00Z'))", '1'],
    ["formatDateTime(toDateTime('2026-03-15T23:30:00Z'), '%F %H')", '2026-03-16 00'],
    ["toDateTime('2026-03-15T23:30:00Z') > '2026-03-16'", true],
  ])('%s', async (source, expected) => {
    expect(String(await value(source, 'Europe/Berlin'))).toBe(String(expected));
  });
});

describe('a time with a zone of its own, in a query of Berlin', () => {
  const TOKYO = "toTimeZone(toDateTime('2026-03-15T23:30:00Z'), 'Asia/Tokyo')";
  test.each([
    [`toString(${TOKYO})`, '2026-03-16 08:30:00'],
    [`toHour(toTimeZone(${TOKYO}, 'Europe/Berlin'))`, '0'],
    ["timezoneOf(toDateTime('2026-03-15'))", 'Europe/Berlin'],
    [`${TOKYO} = '2026-03-16 08:30:00'`, 'true'],
    [`toString(greatest(toDateTime('2026-01-01'), ${TOKYO}))`, '2026-03-16 00:30:00'],
  ])('%s', async (source, expected) => {
    expect(String(await value(source, 'Europe/Berlin'))).toBe(expected);
  });
});

describe.each([
  ['CET', '14', '1771758000'],
  ['PST', '5', '1771790400'],
  ['eet', '15', '1771754400'],
])('a query of %s', (zone, hour, noon) => {
  test.each([
    ["toHour(toDateTime('2026-07-15T12:00:00Z'))", hour],
    ["toUnixTimestamp(toDateTime('2026-02-22 12:00:00'))", noon],
    ["toJSONString([toDateTime('2026-07-15T12:00:00Z')])", `["2026-07-15 ${hour.padStart(2, '0')}:00:00"]`],
    ["timezoneOf(toDateTime('2026-07-15'))", zone],
    ['timezone()', zone],
  ])('%s', async (source, expected) => {
    expect(String(await value(source, zone))).toBe(expected);
  });
});

test('the zone of a project is good in the spelling that the project gave it', async () => {
  const source = "toHour(toDateTime('2026-07-15T12:00:00Z', 'europe/berlin'))";
  expect(String(await value(source, 'europe/berlin'))).toBe('14');
  await expect(value(source, 'UTC')).rejects.toThrow("Unknown time zone 'europe/berlin'");
});

test('Postgres knows every zone that a query can name, by the same clock', async () => {
  const names = [...Intl.supportedValuesOf('timeZone'), ...ZONE_ALIASES, 'PST', 'europe/berlin'];
  expect(names.filter((name) => !isIanaZone(name))).toEqual(['PST', 'europe/berlin']);
  const rows = await database.query({
    text: `select name, extract(epoch from (timestamp '2026-07-15 12:00' at time zone 'UTC' at time zone name)
      - timestamp '2026-07-15 12:00') * 1000 from unnest($1::text[]) as name`,
    values: [names.map(databaseZone)],
  });
  const instant = Date.UTC(2026, 6, 15, 12);
  expect(rows.filter(([name, ahead]) => zoneOf(name as string).offsetAt(instant) !== Number(ahead))).toEqual(
    [],
  );
  expect(rows.length).toBeGreaterThan(400);
});

test('filters on dates agree between the matcher and SQL in every zone', async () => {
  const properties = [
    '2026-03-29',
    '2026-03-29 02:30:00',
    '2026-03-28T23:30:00Z',
    '2026-10-25 02:30:00',
    '2026-03-29T00:00:00+02:00',
  ];
  const values = ['2026-03-29', '2026-03-29 03:00:00', '2026-10-25', '-1d', '-2m'];
  const wrong: string[] = [];
  let tried = 0;
  for (const timezone of [
    'UTC',
    'Europe/Berlin',
    'America/New_York',
    'Asia/Kolkata',
    'Australia/Lord_Howe',
  ]) {
    const moment = { now: Date.parse('2026-03-29T12:00:00Z'), timezone };
    for (const property of properties) {
      await database.replaceEvents([{ event: 'e', properties: { k: property } }]);
      for (const filterValue of values) {
        for (const operator of ['is_date_before', 'is_date_after', 'is_date_exact']) {
          const node = readFilters([{ key: 'k', operator, value: filterValue }]);
          const expected = prepareMatcher(node, 'filter')(() => property, moment);
          const where = filterExpression(node, { moment, scope: 'events' });
          const statement = printStatement(
            selection({ table: 'events', select: [await parser.expression('event')], where }),
            { schema: createSchema('current'), projectId: PROJECT, timezone },
          );
          const got = (await database.query(statement)).length === 1;
          tried++;
          if (got !== expected) wrong.push(`${timezone} ${property} ${operator} ${filterValue}: ${got}`);
        }
      }
    }
  }
  expect(wrong).toEqual([]);
  expect(tried).toBe(375);
});
