import fc from 'fast-check';
import type { Column, ColumnType } from '../../formats/columns.ts';
import { FOREVER, NEVER, type Row, type Value } from './copy-binary.ts';

/** Text that Postgres can hold: any but NUL and lone surrogates; with much that has to be escaped. */
const character = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 1 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 31 }).map((code) => String.fromCharCode(code)) },
  { weight: 2, arbitrary: fc.constantFrom('"', '\\', ',', '\n', '\r', '/', '\x7f', '\u2028') },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }) },
);
export const text = fc
  .array(character, { maxLength: 40 })
  .map((parts) => parts.join('').replaceAll('\0', '').toWellFormed());

const space = fc.constantFrom('', ' ', '\n', '\t ', '\r\n');
/** A JSON document, compact as ours are or with white space as others' may be. */
const json = fc.oneof(
  fc.jsonValue().map((value) => JSON.stringify(value)),
  fc.tuple(text, text, space).map(([key, value, gap]) => {
    return `${gap}{${gap}${JSON.stringify(key)}${gap}:${gap}[${gap}${JSON.stringify(value)}${gap},null]}${gap}`;
  }),
);

/** From 4713 BC to 294246, most of them near. */
const timestamp = fc.oneof(
  { weight: 4, arbitrary: fc.bigInt({ min: 0n, max: 4_000_000_000_000_000n }) },
  { weight: 2, arbitrary: fc.bigInt({ min: -62_135_596_800_000_000n, max: 253_402_300_799_999_999n }) },
  { weight: 2, arbitrary: fc.bigInt({ min: -210_866_803_200_000_000n, max: 9_222_000_000_000_000_000n }) },
  { weight: 1, arbitrary: fc.constantFrom(FOREVER, NEVER) },
);

const VALUES: Record<ColumnType, fc.Arbitrary<Value>> = {
  string: text,
  json,
  uuid: fc.uuid(),
  int32: fc.integer(),
  int64: fc.bigInt({ min: NEVER, max: FOREVER }),
  float64: fc.oneof(fc.double(), fc.integer(), fc.constantFrom(0, -0, 1e21, 5e-324, 2 ** 53)),
  bool: fc.boolean(),
  timestamp,
  strings: fc.array(fc.option(text), { maxLength: 5 }),
};

const TYPES = Object.keys(VALUES) as ColumnType[];

const column = fc.record({
  name: fc.oneof(text, fc.constantFrom('properties', 'a"b', 'x,y')),
  type: fc.constantFrom(...TYPES),
  nullable: fc.boolean(),
});

export interface Table {
  columns: Column[];
  rows: Row[];
}

/** Columns of any kind and rows for them; some columns repeat few values, as events' names do. */
export const table: fc.Arbitrary<Table> = fc
  .uniqueArray(column, { selector: ({ name }) => name, minLength: 1, maxLength: 8 })
  .chain((columns) => {
    const cells = columns.map(({ type, nullable }) => {
      const value = VALUES[type];
      const any = fc
        .boolean()
        .chain((few) =>
          few
            ? fc.array(value, { minLength: 1, maxLength: 3 }).map((some) => fc.constantFrom(...some))
            : fc.constant(value),
        );
      return any.map((one) => (nullable ? fc.option(one, { freq: 4 }) : one));
    });
    return fc
      .tuple(...cells)
      .chain((values) => fc.array(fc.tuple(...values), { maxLength: 60 }))
      .map((rows) => ({ columns, rows: rows as Row[] }));
  });
