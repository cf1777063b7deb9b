import { describe, expect, test } from '@jest/globals';
import type { Column } from '../../formats/columns.ts';
import { copyBytes, FOREVER, NEVER, type Row } from './copy-binary.ts';
import { encode, parquetMetadata, readParquet } from './encode.ts';

async function write(columns: Column[], rows: Row[], options: { maxFileBytes?: number } = {}) {
  const { contents } = await encode(copyBytes(columns, rows), {
    columns,
    format: 'Parquet',
    compression: 'zstd',
    ...options,
  });
  const content = contents[0] as Buffer;
  return { content, metadata: await parquetMetadata(content), read: await readParquet(content, columns) };
}

const one = (type: Column['type'], nullable = false): Column[] => [{ name: 'c', type, nullable }];
type Written = Awaited<ReturnType<typeof write>>;
const chunk = ({ metadata }: Written, group = 0, column = 0) =>
  metadata.row_groups[group]?.columns[column]?.meta_data;

/** Shows the first row that differs, not all of them. */
function expectRows(read: unknown[][], rows: readonly Row[]): void {
  const wrong = rows.findIndex((row, index) => row.some((value, column) => value !== read[index]?.[column]));
  expect([read.length, read[wrong]]).toEqual([rows.length, rows[wrong]]);
}

test('the schema says what the columns are', async () => {
  const columns: Column[] = [
    { name: 'uuid', type: 'uuid', nullable: false },
    { name: 'json', type: 'json', nullable: true },
    { name: 'at', type: 'timestamp', nullable: false },
    { name: 'int', type: 'int32', nullable: false },
    { name: 'big', type: 'int64', nullable: true },
    { name: 'x', type: 'float64', nullable: true },
    { name: 'ok', type: 'bool', nullable: false },
    { name: 'urls', type: 'strings', nullable: true },
  ];
  const row: Row = ['0193a7c2-5f3e-7abc-8def-0123456789ab', '{}', 0n, 1, 2n, 3.5, true, ['a']];
  const { metadata } = await write(columns, [row]);
  expect(metadata.created_by).toMatch(/^Sluice version /);
  expect(metadata.num_rows).toBe(1n);
  const shape = metadata.schema.map(({ name, type, repetition_type, logical_type, num_children }) => [
    name,
    type ?? num_children,
    repetition_type,
    logical_type,
  ]);
  const string = { type: 'STRING' };
  expect(shape).toEqual([
    ['schema', 8, undefined, undefined],
    ['uuid', 'BYTE_ARRAY', 'REQUIRED', string],
    ['json', 'BYTE_ARRAY', 'OPTIONAL', string],
    ['at', 'INT64', 'REQUIRED', { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' }],
    ['int', 'INT32', 'REQUIRED', undefined],
    ['big', 'INT64', 'OPTIONAL', undefined],
    ['x', 'DOUBLE', 'OPTIONAL', undefined],
    ['ok', 'BOOLEAN', 'REQUIRED', undefined],
    ['urls', 1, 'OPTIONAL', { type: 'LIST' }],
    ['list', 1, 'REPEATED', undefined],
    ['element', 'BYTE_ARRAY', 'OPTIONAL', string],
  ]);
});

describe('statistics', () => {
  const statistics = async (type: Column['type'], values: Row, nullable = true) =>
    chunk(await write(one(type, nullable), values.map((value) => [value]) as Row[]))?.statistics;

  test('of numbers, texts, times and nulls', async () => {
    expect(await statistics('int32', [3, null, -2, 7])).toMatchObject({
      null_count: 1n,
      min_value: -2,
      max_value: 7,
      is_min_value_exact: true,
      is_max_value_exact: true,
    });
    expect(await statistics('int64', [5n, -(2n ** 62n)])).toMatchObject({
      min_value: -(2n ** 62n),
      max_value: 5n,
    });
    expect(await statistics('float64', [Number.NaN, 1.5, -3.5])).toMatchObject({
      min_value: -3.5,
      max_value: 1.5,
    });
    expect(await statistics('string', ['b', 'ab', 'é', null, ''])).toMatchObject({
      null_count: 1n,
      min_value: '',
      max_value: 'é',
    });
    expect(await statistics('bool', [true, false])).toMatchObject({ min_value: false, max_value: true });
    expect(await statistics('strings', [['b', 'a'], [], null, [null]])).toMatchObject({
      null_count: 3n,
      min_value: 'a',
      max_value: 'b',
    });
  });

  test('of zeros are -0 and 0, and of what has no order there are none', async () => {
    const zeros = await statistics('float64', [0]);
    expect(Object.is(zeros?.min_value, -0)).toBe(true);
    expect(Object.is((await statistics('float64', [-0]))?.max_value, 0)).toBe(true);
    expect(await statistics('float64', [Number.NaN])).toEqual({ null_count: 0n });
    expect(await statistics('json', ['{"a":1}'])).toEqual({ null_count: 0n });
    expect(await statistics('string', [null, null])).toEqual({ null_count: 2n });
  });

  test('of long texts are cut at a character, and still bounds', async () => {
    const low = `a${'é'.repeat(50)}`;
    const high = `b${'é'.repeat(50)}`;
    const found = await statistics('string', [low, high]);
    expect(found).toMatchObject({
      min_value: `a${'é'.repeat(31)}`,
      max_value: `b${'é'.repeat(30)}ê`,
      is_min_value_exact: false,
      is_max_value_exact: false,
    });
    // There is nothing of that length after it.
    const last = '\u{10ffff}'.repeat(20);
    expect(await statistics('string', [last])).toEqual({
      null_count: 0n,
      min_value: '\u{10ffff}'.repeat(16),
      is_min_value_exact: false,
    });
    const beforeSurrogates = 'x'.repeat(61) + '\ud7ff'.repeat(5);
    expect((await statistics('string', [beforeSurrogates]))?.max_value).toBe(`${'x'.repeat(61)}\ue000`);
  });

  test('of 64 bytes and of one more', async () => {
    const exact = 'x'.repeat(64);
    expect(await statistics('string', [exact])).toMatchObject({ max_value: exact, is_max_value_exact: true });
    for (const values of [
      [exact, `${exact}y`],
      [`${exact}y`, exact],
    ])
      expect(await statistics('string', values)).toMatchObject({
        max_value: `${'x'.repeat(63)}y`,
        is_max_value_exact: false,
      });
  });
});

describe('dictionaries', () => {
  const encodings = (written: Written, group = 0) => chunk(written, group)?.encodings;

  test('hold what repeats', async () => {
    const rows: Row[] = Array.from({ length: 5_000 }, (_, index) => [`event ${index % 300}`]);
    const written = await write(one('string'), rows);
    expect(encodings(written)).toContain('RLE_DICTIONARY');
    expect(chunk(written)?.dictionary_page_offset).toBe(4n);
    expectRows(written.read, rows);
    expect(chunk(written)?.statistics).toMatchObject({ min_value: 'event 0', max_value: 'event 99' });
  });

  test.each(['string', 'uuid', 'timestamp', 'int64', 'int32'] as const)(
    'are given up for %s that differ',
    async (type) => {
      const value = {
        string: (index: number) => `value ${index}`,
        uuid: (index: number) => `0193a7c2-5f3e-7abc-8def-${String(index).padStart(12, '0')}`,
        timestamp: (index: number) => BigInt(index) * 1_000_003n,
        int64: (index: number) => BigInt(index) * -7n,
        int32: (index: number) => index * 3,
      }[type];
      const rows: Row[] = Array.from({ length: 9_000 }, (_, index) => [value(index)]);
      const written = await write(one(type), rows);
      expect(encodings(written)).toEqual(['RLE', 'PLAIN']);
      expectRows(written.read, rows);
    },
  );

  test('that become too large stay for the pages before', async () => {
    // 3,000 values in no order, then only new ones.
    let state = 1;
    const any = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return (state >>> 8) % 3_000;
    };
    const text = (index: number) => `${String(index).padStart(200, '0')}`;
    const rows: Row[] = Array.from({ length: 90_000 }, (_, index) => [text(index < 80_000 ? any() : index)]);
    const written = await write(one('string'), rows);
    expect(encodings(written)).toEqual(['RLE', 'RLE_DICTIONARY', 'PLAIN']);
    expectRows(written.read, rows);
    expect(chunk(written)?.statistics).toMatchObject({ is_max_value_exact: false });
  });

  test('are given up in time for pages not to become large', async () => {
    // Twenty long texts again and again, then many: without the dictionary the page would have some 60 MB.
    const rows: Row[] = Array.from({ length: 64_000 }, (_, index) => [
      `${index < 60_000 ? index % 20 : index} ${'x'.repeat(1000)}`,
    ]);
    const written = await write(one('string'), rows);
    expect(encodings(written)).toContain('RLE_DICTIONARY');
    expect(chunk(written)?.total_uncompressed_size).toBeLessThan(8_000_000n);
    expectRows(written.read, rows);
  });
});

test('row groups end before they are large, and each has its own dictionary and bounds', async () => {
  const columns: Column[] = [
    { name: 'n', type: 'int32', nullable: false },
    { name: 'kind', type: 'string', nullable: true },
    { name: 'text', type: 'string', nullable: false },
  ];
  const filler = 'abcdefgh'.repeat(128);
  const rows: Row[] = Array.from({ length: 100_000 }, (_, index) => [
    index,
    index % 10 === 0 ? null : `kind ${Math.floor(index / 33_000)}`,
    `${index} ${filler}`,
  ]);
  const { metadata, read } = await write(columns, rows);
  expect(metadata.row_groups.length).toBeGreaterThan(1);
  const bounds = metadata.row_groups.map((group) => group.columns[0]?.meta_data?.statistics);
  let next = 0;
  for (const [index, bound] of bounds.entries()) {
    expect(bound?.min_value).toBe(next);
    next += Number(metadata.row_groups[index]?.num_rows);
    expect(bound?.max_value).toBe(next - 1);
    expect(Number(metadata.row_groups[index]?.total_byte_size)).toBeLessThan(80 * 1024 * 1024);
  }
  expectRows(read, rows);
});

test('times beyond what microseconds since 1970 can say are the last there is', async () => {
  const rows: Row[] = [[FOREVER], [NEVER], [9_222_000_000_000_000_000n], [-210_866_803_200_000_000n]];
  const { read } = await write(one('timestamp'), rows);
  expect(read).toEqual([[FOREVER], [NEVER + 1n], [9_222_000_000_000_000_000n], [-210_866_803_200_000_000n]]);
});
