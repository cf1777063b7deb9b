import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { BrokenRowsError, COPY_HEADER } from '../../formats/copy-format.ts';
import { CopyRows } from '../../formats/copy-rows.ts';
import { COPY_TRAILER, copyBytes } from '../destinations/sample.ts';

const columns = [
  { name: 'a', type: 'string' as const, nullable: true },
  { name: 'b', type: 'int32' as const, nullable: true },
  { name: 'c', type: 'string' as const, nullable: true },
];

function readAll(bytes: Buffer, cuts: readonly number[]): (string | null)[][] {
  const rows = new CopyRows(columns.length);
  const found: (string | null)[][] = [];
  const places = [
    0,
    ...cuts.map((cut) => cut % (bytes.length + 1)).sort((one, other) => one - other),
    bytes.length,
  ];
  for (let index = 1; index < places.length; index += 1) {
    rows.push(bytes.subarray(places[index - 1], places[index]));
    while (rows.next()) found.push([0, 1, 2].map((field) => rows.field(field)?.toString('latin1') ?? null));
  }
  rows.finish();
  return found;
}

test('rows are the same wherever the chunks are cut', () => {
  const text = fc.option(fc.string({ unit: 'binary', maxLength: 40 }), { nil: null });
  fc.assert(
    fc.property(
      fc.array(fc.record({ a: text, b: fc.option(fc.integer({ min: -9, max: 9 }), { nil: null }), c: text })),
      fc.array(fc.nat(4_000), { maxLength: 60 }),
      (rows, cuts) => {
        const bytes = copyBytes(columns, rows);
        const expected = rows.map(({ a, b, c }) => {
          const number = Buffer.alloc(4);
          number.writeInt32BE(b ?? 0);
          const latin = (value: string | null) =>
            value === null ? null : Buffer.from(value).toString('latin1');
          return [latin(a), b === null ? null : number.toString('latin1'), latin(c)];
        });
        expect(readAll(bytes, cuts)).toEqual(expected);
      },
    ),
    { numRuns: 500 },
  );
});

test('every byte in a chunk of its own', () => {
  const bytes = copyBytes(columns, [
    { a: 'one', b: 1, c: null },
    { a: '', b: null, c: 'x'.repeat(300) },
  ]);
  const single = readAll(
    bytes,
    Array.from({ length: bytes.length }, (_, index) => index),
  );
  expect(single).toEqual(readAll(bytes, []));
});

test('a row of megabytes is put together once', () => {
  const bytes = copyBytes(columns, [{ a: 'x'.repeat(5_000_000), b: 1, c: 'end' }]);
  const rows = readAll(
    bytes,
    Array.from({ length: 600 }, (_, index) => index * 8_192),
  );
  expect(rows[0]?.[0]).toHaveLength(5_000_000);
  expect(rows[0]?.[2]).toBe('end');
});

test.each([
  [
    'what is no COPY',
    Buffer.from('select 1, and a text that is longer than the header of a COPY'),
    'it does not begin as COPY in binary form does',
  ],
  [
    'another number of fields',
    Buffer.concat([COPY_HEADER, Buffer.of(0, 2), COPY_TRAILER]),
    'row 0 has 2 fields, and there are 3 columns',
  ],
  ['an end before the end', COPY_HEADER, 'it stops before row 0 or its end is complete'],
  [
    'half a row',
    copyBytes(columns, [{ a: 'one', b: 1, c: 'two' }]).subarray(0, -4),
    'it stops before row 0 or its end is complete',
  ],
])('%s is refused', (_name, bytes, message) => {
  expect(() => readAll(bytes, [])).toThrow(BrokenRowsError);
  expect(() => readAll(bytes, [])).toThrow(message);
});
