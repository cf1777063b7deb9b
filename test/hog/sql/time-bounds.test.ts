import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createParser } from '../../../hog/parser/index.ts';
import { createSchema, printStatement, selection } from '../../../hog/sql/index.ts';
import { type TimeBounds, timeBounds } from '../../../hog/sql/time-bounds.ts';
import { PATIENCE } from '../../support/eventually.ts';
import { eventsDatabase } from './database.ts';
import { PROJECT } from './tables.ts';

const parser = createParser({ timeoutMs: PATIENCE });
afterAll(() => parser.close());
const database = eventsDatabase();
const ZONE = 'America/St_Johns';
const DAY = 86_400_000;

async function boundsOf(condition: string, now = Date.now()): Promise<TimeBounds> {
  const isTime = (expr: { kind: string; chain?: string[] }) =>
    expr.kind === 'field' && expr.chain?.join('.') === 'timestamp';
  return timeBounds([await parser.expression(condition)], { isTime, now, timezone: ZONE });
}

describe('the times of rows', () => {
  const day = (bounds: TimeBounds) => [bounds.from, bounds.to].map((one) => one && Math.round(one / DAY));
  const near = Math.round(Date.UTC(2024, 4, 10) / DAY);

  test.each([
    ["timestamp > '2024-05-10'", [near - 2, null]],
    ["'2024-05-10' >= timestamp", [null, near + 2]],
    ["timestamp = toDateTime('2024-05-10 00:00:00')", [near - 2, near + 2]],
    ["timestamp between '2024-05-10' and '2024-05-20'", [near - 2, near + 12]],
    ["toDate(timestamp) <= '2024-05-10'", [null, near + 3]],
    ["toStartOfWeek(timestamp) = '2024-05-10'", [near - 2, near + 9]],
    ["toStartOfMonth(toTimeZone(timestamp, 'Asia/Tokyo')) <= '2024-05-10'", [null, near + 33]],
    ["event = 'x' and (timestamp > '2024-05-10' and timestamp < '2024-05-20')", [near - 2, near + 12]],
    ["timestamp > '2024-05-10' and timestamp > '2023-01-01'", [near - 2, null]],
    ["timestamp >= toDateTime('2024-05-12') - interval 2 day", [near - 2, null]],
    ["timestamp >= toStartOfDay(toDateTime('2024-05-10 12:00:00'))", [near - 3, null]],
  ])('follow from %s', async (condition, expected) => {
    const found = day(await boundsOf(condition));
    expect(found.map((one, index) => one && Math.abs(one - (expected[index] ?? 0)) <= 1)).toEqual(
      expected.map((one) => one && true),
    );
  });

  test.each([
    "timestamp > '2024-05-10' or event = 'x'",
    "not (timestamp > '2024-05-10')",
    "timestamp != '2024-05-10'",
    "timestamp not between '2024-05-10' and '2024-05-20'",
    'timestamp > created_at',
    "created_at > '2024-05-10'",
    "timestamp > 'no time'",
    "timestamp > now() - interval '1' fortnight".replace("interval '1' fortnight", 'toIntervalDay(price)'),
    "addDays(timestamp, 400) > '2024-05-10'",
    'toHour(timestamp) > 5',
  ])('do not follow from %s', async (condition) => {
    expect(await boundsOf(condition)).toEqual({ from: null, to: null });
  });

  test('follow from the present', async () => {
    const now = Date.UTC(2024, 4, 20);
    const found = await boundsOf(
      'timestamp >= now() - interval 10 day and toDate(timestamp) <= today()',
      now,
    );
    expect(day(found)).toEqual([near - 2, near + 10 + 3]);
  });
});

const text = fc
  .integer({ min: Date.UTC(2024, 0), max: Date.UTC(2024, 3) })
  .chain((at) =>
    fc
      .constantFrom(10, 19)
      .map((length) => `'${new Date(at).toISOString().replace('T', ' ').slice(0, length)}'`),
  );
const time: fc.Arbitrary<string> = fc.letrec<{ time: string }>((tie) => ({
  time: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    text.map((one) => `toDateTime(${one})`),
    fc
      .tuple(
        tie('time'),
        fc.constantFrom('+', '-'),
        fc.integer({ min: 0, max: 3 }),
        fc.constantFrom('hour', 'day', 'week', 'month', 'quarter', 'year'),
      )
      .map(([one, op, count, unit]) => `(${one} ${op} interval ${count} ${unit})`),
    fc
      .tuple(tie('time'), fc.constantFrom('Hour', 'Day', 'Week', 'Month', 'Quarter', 'Year'))
      .map(([one, unit]) => `toDateTime(toStartOf${unit}(${one}))`),
  ),
})).time;
const side = fc.constantFrom(
  'timestamp',
  'toStartOfDay(timestamp)',
  'toStartOfHour(timestamp)',
  'toStartOfMonth(timestamp)',
  "toTimeZone(timestamp, 'Asia/Tokyo')",
  "toStartOfDay(toTimeZone(timestamp, 'Pacific/Kiritimati'))",
);
const condition = fc.oneof(
  fc
    .tuple(side, fc.constantFrom('>', '>=', '<', '<=', '='), fc.oneof(time, text), fc.boolean())
    .map(([one, op, other, isMirrored]) => (isMirrored ? `${other} ${op} ${one}` : `${one} ${op} ${other}`)),
  fc.tuple(side, time, time).map(([one, low, high]) => `${one} between ${low} and ${high}`),
);

describe('rows that pass conditions', () => {
  beforeAll(async () => {
    await database.client().query(
      `insert into hogql.events (project_id, uuid, timestamp, event, distinct_id, properties, created_at, inserted_at,
         elements_chain, person_mode)
       select $1, gen_random_uuid(), at, 'e', 'd', '{}', at, at, '', 'full'
       from generate_series(timestamptz '2021-01-01', timestamptz '2027-01-01', interval '7 hours') as at`,
      [PROJECT],
    );
  });

  test('have times within the estimate', async () => {
    let bounded = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(condition, { minLength: 1, maxLength: 3 }), async (conditions) => {
        const where = conditions.join(' and ');
        const bounds = await boundsOf(where);
        const tree = selection({
          ...{ table: 'events', where: await parser.expression(where) },
          select: await Promise.all(
            ['min(timestamp)', 'max(timestamp)', 'count()'].map((one) => parser.expression(one)),
          ),
        });
        const statement = printStatement(tree, {
          ...{ schema: createSchema('current'), projectId: PROJECT, timezone: ZONE },
        });
        const [[first, last, count]] = (await database.query(statement)) as [[string, string, number]];
        if (Number(count) === 0) return;
        expect(bounds.from ?? -Infinity).toBeLessThanOrEqual(Date.parse(first));
        expect(bounds.to ?? Infinity).toBeGreaterThanOrEqual(Date.parse(last));
        bounded += 1;
      }),
      { numRuns: 300 },
    );
    expect(bounded).toBeGreaterThan(50);
  });
});
