import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type LiteralType, quoted, sqlLiteral } from '../../db/sql-literal.ts';
import { databaseForFile } from '../support/database.ts';

const database = databaseForFile();

const HOSTILE = [
  "'",
  "''",
  '\\',
  "\\'",
  "\\''",
  "'; drop table events; --",
  "E'\\x41'",
  '$1::text',
  '$$',
  '$a$',
  '/*',
  '*/',
  '--',
  '\n',
  '\r\n',
  '\u2028',
  '%s',
  '%',
  '_',
  '\\000',
  '\\u0000',
  '\\x00',
  '"',
  '"";',
  '{a,b}',
  '{"a\\"b",NULL}',
  'NULL',
  'ʼ',
  '＇',
  '\u00bf\u005c\u0027',
  '😀',
  'ａ',
  '\u{10ffff}',
  'a'.repeat(5_000),
];
const text = fc.oneof(
  fc.constantFrom(...HOSTILE),
  fc.string({ unit: 'binary' }).map((one) => one.replaceAll('\0', '').toWellFormed()),
  fc.array(fc.constantFrom(...HOSTILE), { maxLength: 4 }).map((parts) => parts.join('')),
);
const big = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String);
const float = fc.double().map((one) => (Object.is(one, -0) ? '0' : String(one)));
const instant = fc
  .tuple(fc.integer({ min: 0, max: 9_999 }), fc.integer({ min: 0, max: 999_999 }))
  .map(
    ([days, micros]) =>
      `${new Date(days * 86_400_000).toISOString().slice(0, 10)} 03:04:05.${String(micros).padStart(6, '0')}+00:00`,
  );

const VALUES: { [type in LiteralType]: fc.Arbitrary<string | string[]> } = {
  text,
  integer: fc.integer().map(String),
  bigint: big,
  float8: float,
  numeric: fc.oneof(
    big,
    float.filter((one) => Number.isFinite(Number(one))),
  ),
  boolean: fc.constantFrom('true', 'false', 't', '0'),
  uuid: fc.uuid(),
  timestamp: instant.map((one) => one.slice(0, 26)),
  timestamptz: instant,
  date: instant.map((one) => one.slice(0, 10)),
  'text[]': fc.array(text, { maxLength: 5 }),
  'bigint[]': fc.array(big, { maxLength: 5 }),
  'float8[]': fc.array(float, { maxLength: 5 }),
  'uuid[]': fc.array(fc.uuid(), { maxLength: 5 }),
};

/** With and without the setting under which backslashes are escapes in every text. */
async function agrees(type: LiteralType, values: (string | string[])[]): Promise<void> {
  const client = await database.pool.connect();
  try {
    for (const conforming of ['on', 'off']) {
      await client.query(`set standard_conforming_strings = ${conforming}; set escape_string_warning = off`);
      const selected = values.map((value) => sqlLiteral(type, value)).join(', ');
      const { rows } = await client.query({ text: `select ${selected}`, rowMode: 'array' });
      const asked = values.map((_, index) => `$${index + 1}::${type}`).join(', ');
      const expected = await client.query({ text: `select ${asked}`, rowMode: 'array', values });
      expect(rows[0]).toEqual(expected.rows[0]);
      expect(expected.fields.map((one) => one.dataTypeID)).toEqual(
        expected.fields.map(() => expected.fields[0]?.dataTypeID),
      );
    }
  } finally {
    await client.query('reset standard_conforming_strings; reset escape_string_warning');
    client.release();
  }
}

test.each(Object.keys(VALUES) as LiteralType[])('a literal of %s is what the parameter is', async (type) => {
  await fc.assert(
    fc.asyncProperty(fc.array(VALUES[type], { minLength: 1, maxLength: 20 }), (values) =>
      agrees(type, values),
    ),
    { numRuns: 40 },
  );
});

test('every hostile text comes back as it is', async () => {
  const { rows } = await database.pool.query({
    text: `select ${HOSTILE.map((one) => sqlLiteral('text', one)).join(', ')}`,
    rowMode: 'array',
  });
  expect(rows[0]).toEqual(HOSTILE);
});

test('what Postgres has no text for, and types of nobody, are refused', () => {
  expect(() => quoted('a\0b')).toThrow('character 0');
  expect(() => quoted('\ud800')).toThrow('surrogate');
  expect(() => sqlLiteral('text; drop table x; --' as LiteralType, 'a')).toThrow(
    'cannot be written as a literal',
  );
  expect(() => sqlLiteral('text', ['a'])).toThrow('needs one text');
  expect(() => sqlLiteral('text[]', 'a')).toThrow('needs a list');
});
