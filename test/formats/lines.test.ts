import { describe, expect, test } from '@jest/globals';
import type { Column } from '../../formats/columns.ts';
import { rounds } from '../support/rounds.ts';
import { copyBytes, FOREVER, inChunks, NEVER, type Row } from './copy-binary.ts';
import { decompress, encode, readParquet } from './encode.ts';
import { csvLine, jsonLine } from './expected.ts';

const columns: Column[] = [
  { name: 'uuid', type: 'uuid', nullable: false },
  { name: 'event', type: 'string', nullable: true },
  { name: 'properties', type: 'json', nullable: true },
  { name: 'at', type: 'timestamp', nullable: true },
  { name: 'n', type: 'int32', nullable: true },
  { name: 'big', type: 'int64', nullable: true },
  { name: 'x', type: 'float64', nullable: true },
  { name: 'ok', type: 'bool', nullable: true },
  { name: 'urls', type: 'strings', nullable: true },
];
const UUID = '0193a7c2-5f3e-7abc-8def-0123456789ab';
const micros = (iso: string) => BigInt(Date.parse(iso)) * 1000n;

const rows: Row[] = [
  [
    UUID,
    '$pageview',
    '{"a":1}',
    micros('2026-11-21T16:00:00.123Z') + 456n,
    1,
    2n ** 63n - 1n,
    1.5,
    true,
    ['/a', '/b"c'],
  ],
  [
    UUID,
    '',
    '[\n\t1 ,\r\n2]',
    micros('1969-12-31T23:59:59.999Z') + 999n,
    -2_147_483_648,
    -(2n ** 63n),
    -0,
    false,
    [],
  ],
  [UUID, 'a"b\\c\n\u0001\u007fé😀', '"\\n"', FOREVER, 0, 0n, Number.NaN, null, [null, '', 'x']],
  [UUID, null, null, NEVER, null, null, Number.NEGATIVE_INFINITY, null, null],
  [UUID, 'a,b', 'null', micros('+010000-01-01T00:00:00Z'), 10, 100n, 1e21, true, ['ü']],
  [UUID, ' x ', '{}', micros('-000001-03-01T00:00:00Z'), 99, 12_345_678_901n, 0.1, true, [',']],
  [UUID, 'r\rr', '{}', micros('0000-02-29T12:00:00Z'), 7, -7n, 123_456_789, false, ['\n']],
];

test('JSON lines, as one can read them', async () => {
  const { contents } = await encode(copyBytes(columns, rows), {
    columns,
    format: 'JSONLines',
    compression: null,
  });
  const uuid = `{"uuid":"${UUID}"`;
  expect(contents.join('').split('\n')).toEqual([
    `${uuid},"event":"$pageview","properties":{"a":1},"at":"2026-11-21T16:00:00.123456Z","n":1,"big":9223372036854775807,"x":1.5,"ok":true,"urls":["/a","/b\\"c"]}`,
    `${uuid},"event":"","properties":[  1 ,  2],"at":"1969-12-31T23:59:59.999999Z","n":-2147483648,"big":-9223372036854775808,"x":-0,"ok":false,"urls":[]}`,
    `${uuid},"event":"a\\"b\\\\c\\n\\u0001\u007fé😀","properties":"\\n","at":"infinity","n":0,"big":0,"x":"NaN","ok":null,"urls":[null,"","x"]}`,
    `${uuid},"event":null,"properties":null,"at":"-infinity","n":null,"big":null,"x":"-Infinity","ok":null,"urls":null}`,
    `${uuid},"event":"a,b","properties":null,"at":"+010000-01-01T00:00:00.000000Z","n":10,"big":100,"x":1e+21,"ok":true,"urls":["ü"]}`,
    `${uuid},"event":" x ","properties":{},"at":"-000001-03-01T00:00:00.000000Z","n":99,"big":12345678901,"x":0.1,"ok":true,"urls":[","]}`,
    `${uuid},"event":"r\\rr","properties":{},"at":"0000-02-29T12:00:00.000000Z","n":7,"big":-7,"x":123456789,"ok":false,"urls":["\\n"]}`,
    '',
  ]);
});

test('CSV, as one can read it', async () => {
  const { contents } = await encode(copyBytes(columns, rows), { columns, format: 'CSV', compression: null });
  expect(contents.join('').split('\r\n')).toEqual([
    'uuid,event,properties,at,n,big,x,ok,urls',
    `${UUID},$pageview,"{""a"":1}",2026-11-21T16:00:00.123456Z,1,9223372036854775807,1.5,true,"[""/a"",""/b\\""c""]"`,
    `${UUID},"","[\n\t1 ,`,
    `2]",1969-12-31T23:59:59.999999Z,-2147483648,-9223372036854775808,-0,false,[]`,
    `${UUID},"a""b\\c\n\u0001\u007fé😀","""\\n""",infinity,0,0,NaN,,"[null,"""",""x""]"`,
    `${UUID},,,-infinity,,,-Infinity,,`,
    `${UUID},"a,b",null,+010000-01-01T00:00:00.000000Z,10,100,1e+21,true,"[""ü""]"`,
    `${UUID}, x ,{},-000001-03-01T00:00:00.000000Z,99,12345678901,0.1,true,"["",""]"`,
    `${UUID},"r\rr",{},0000-02-29T12:00:00.000000Z,7,-7,123456789,false,"[""\\n""]"`,
    '',
  ]);
});

test("jsonb's binary form begins with its version, which is not part of the document", async () => {
  const one: Column[] = [{ name: 'j', type: 'json', nullable: false }];
  const source = copyBytes(one, [['\u0001{"a": 1}']]);
  const json = await encode(source, { columns: one, format: 'JSONLines', compression: null });
  expect(json.contents.join('')).toBe('{"j":{"a": 1}}\n');
  const csv = await encode(source, { columns: one, format: 'CSV', compression: null });
  expect(csv.contents.join('')).toBe('j\r\n"{""a"": 1}"\r\n');
});

describe('a stream cut anywhere', () => {
  const bytes = copyBytes(columns, rows);

  test.each(['JSONLines', 'CSV', 'Parquet'] as const)('makes the same %s', async (format) => {
    const { contents: wanted, ...whole } = await encode(bytes, { columns, format, compression: null });
    // Each run cuts the stream at so many places in a row. Together the runs cut it at every place.
    const apart = rounds(4, 1);
    const single = new Array<number>(apart).fill(1);
    for (let at = 1; at < bytes.length; at += apart) {
      const { contents, ...cut } = await encode(inChunks(bytes, at, ...single, bytes.length), {
        ...{ columns, format, compression: null },
      });
      expect([at, cut]).toEqual([at, whole]);
      expect([at, Buffer.concat(contents).equals(Buffer.concat(wanted))]).toEqual([at, true]);
    }
  });
});

describe.each(['JSONLines', 'CSV', 'Parquet'] as const)('%s of giant values', (format) => {
  const one: Column[] = [
    { name: 'text', type: 'string', nullable: false },
    { name: 'json', type: 'json', nullable: false },
    { name: 'list', type: 'strings', nullable: false },
  ];
  const plain = 'x'.repeat(20 * 1024 * 1024);

  test.each([
    ['plain', plain, JSON.stringify(plain), ['a']],
    ['full of what must be escaped', '\u0001"'.repeat(2 * 1024 * 1024), '""', ['a']],
    ['a list', 'x', '1', ['"'.repeat(1_000_000), ...new Array<string>(100_000).fill('y')]],
  ])('%s', async (_name, text, json, list) => {
    const small: Row = ['small', '{}', []];
    const all = [small, [text, json, list], small];
    const { contents, rows } = await encode(copyBytes(one, all), {
      columns: one,
      format,
      compression: 'zstd',
    });
    expect(rows).toBe(3);
    if (format === 'Parquet') {
      const read = await readParquet(contents[0] as Buffer, one);
      expect(read.length).toBe(3);
      expect(read.every((row, index) => row.every((value, at) => same(value, all[index]?.[at])))).toBe(true);
      return;
    }
    const line = format === 'CSV' ? csvLine : jsonLine;
    const wanted = (format === 'CSV' ? 'text,json,list\r\n' : '') + all.map((row) => line(one, row)).join('');
    expect(decompress(contents[0] as Buffer, 'zstd').toString() === wanted).toBe(true);
  });
});

const same = (a: unknown, b: unknown) => a === b || JSON.stringify(a) === JSON.stringify(b);
