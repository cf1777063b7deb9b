import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { encodeArrow } from '../../formats/arrow/encode-arrow.ts';
import type { Column } from '../../formats/columns.ts';
import { COMPRESSIONS, type Compression } from '../../formats/formats.ts';
import { findPythonPackages } from '../support/python-packages.ts';
import { rounds } from '../support/rounds.ts';
import { copyBytes, inChunks, type Row } from './copy-binary.ts';
import { encode } from './encode.ts';
import { jsonLine } from './expected.ts';

// What others read exports with, each with its own idea of the formats.
const { found, reason } = findPythonPackages('parquet-readers', [
  'pyarrow==26.0.1',
  'duckdb==1.5.5',
  'zstandard==0.25.0',
  'pytz',
]);
if (!found) process.stderr.write(`Readers in Python are not tested: ${reason}\n`);
const describeFound = found ? describe : describe.skip;

const columns: Column[] = [
  { name: 'uuid', type: 'uuid', nullable: false },
  { name: 'event', type: 'string', nullable: false },
  { name: 'id', type: 'string', nullable: true },
  { name: 'properties', type: 'json', nullable: false },
  { name: 'at', type: 'timestamp', nullable: true },
  { name: 'n', type: 'int32', nullable: true },
  { name: 'big', type: 'int64', nullable: true },
  { name: 'x', type: 'float64', nullable: true },
  { name: 'ok', type: 'bool', nullable: true },
  { name: 'urls', type: 'strings', nullable: true },
  { name: 'tags', type: 'strings', nullable: false },
];
/** Enough for several pages of a column in Parquet. */
const ROWS = rounds(5_000, 30_000);
const sometimes = <T>(index: number, every: number, value: T) => (index % every === 0 ? null : value);
const rows: Row[] = Array.from({ length: ROWS }, (_, index) => [
  `0193a7c2-5f3e-7abc-8def-${String(index * 7919).padStart(12, '0')}`,
  `event ${index % 12}`,
  sometimes(index, 5, `user é ${index}`),
  JSON.stringify({ index, text: 'a\nb"c', list: [1, null], long: `${index} `.repeat(40) }),
  sometimes(index, 7, BigInt(index) * 86_400_000_001n - 500_000_000_000_000n),
  sometimes(index, 3, index - 15_000),
  sometimes(index, 11, BigInt(index) ** 4n),
  sometimes(index, 4, index / 7),
  sometimes(index, 6, index % 2 === 0),
  sometimes(
    index,
    9,
    Array.from({ length: index % 4 }, (_x, at) => sometimes(at, 3, `url ${at}`)),
  ),
  index % 2 === 0 ? [] : ['a'],
]);
const bytes = copyBytes(columns, rows);
const wanted = rows.map((row) => jsonLine(columns, row)).join('');

const READ = `
import json, sys
sys.path.insert(0, sys.argv[1])
kind, name = sys.argv[2], sys.argv[3]

def connect():
    import duckdb
    connection = duckdb.connect()
    # What takes longer than two seconds would draw one among the rows.
    connection.execute("set enable_progress_bar = false")
    return connection

def line(row):
    out = {}
    for key, value in row.items():
        if key == 'at' and hasattr(value, 'astimezone'):
            import datetime
            value = value.astimezone(datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%S.%f') + 'Z'
        out[key] = value
    properties = out.pop('properties')
    return [out, json.loads(properties) if isinstance(properties, str) else properties]

if kind == 'pyarrow':
    import pyarrow.parquet as pq
    rows = pq.read_table(name).to_pylist()
elif kind == 'arrow':
    import pyarrow as pa
    table = pa.ipc.open_stream(open(name, 'rb')).read_all()
    table.validate(full=True)
    rows = table.to_pylist()
elif kind == 'duckdb':
    cursor = connect().execute("select * from read_parquet(?)", [name])
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row)) for row in cursor.fetchall()]
elif kind == 'zstandard':
    # As it reads by default: one frame.
    import io, zstandard
    with open(name, 'rb') as file:
        reader = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), encoding='utf-8', newline='\\n')
        rows = [json.loads(one) for one in reader]
elif kind == 'gzip':
    import gzip
    rows = [json.loads(one) for one in gzip.open(name, 'rt', encoding='utf-8', newline='\\n')]
elif kind == 'duckdb-json':
    print(connect().execute("select count(*), count(distinct uuid), sum(n) from read_json(?)", [name]).fetchone())
    sys.exit(0)
elif kind == 'duckdb-filter':
    query = """select count(*) from read_parquet(?)
        where event = 'event 4' and "at" < timestamptz '1960-01-01 00:00:00+00' and n > -14000"""
    print(connect().execute(query, [name]).fetchone()[0])
    sys.exit(0)
for row in rows:
    print(json.dumps(line(row), ensure_ascii=False, separators=(',', ':')))
`;

describeFound('readers in Python', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-python-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  let expected: string[];
  beforeAll(() => {
    expected = wanted
      .trimEnd()
      .split('\n')
      .map((text) => comparable(JSON.parse(text)));
  });

  /** Python and JavaScript write numbers in different ways: both are read and written once more. */
  function comparable({ properties, ...row }: Record<string, unknown>): string {
    return JSON.stringify([Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1)), properties]);
  }

  function read(kind: string, content: Buffer): string {
    const file = path.join(folder, `file${kind === 'duckdb-json' ? '.jsonl.zst' : ''}`);
    writeFileSync(file, content);
    const { status, stdout, stderr } = spawnSync('python3', ['-c', READ, found as string, kind, file], {
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    });
    if (status !== 0) throw new Error(stderr);
    return stdout;
  }

  const rowsFrom = (output: string) =>
    output
      .trimEnd()
      .split('\n')
      .map((text) => {
        const [row, properties] = JSON.parse(text);
        return comparable({ ...row, properties });
      });

  /** What each reader has said and is right. It says the same again, and that is faster to compare. */
  const right = new Set<string>();

  /** Shows the first row that differs, not all of them. */
  function expectRows(output: string): void {
    if (right.has(output)) return;
    const got = rowsFrom(output);
    const wrong = got.findIndex((row, index) => row !== expected[index]);
    expect([got[wrong], got.length]).toEqual([expected[wrong], expected.length]);
    right.add(output);
  }

  async function written(format: 'Parquet' | 'JSONLines', compression: Compression | null): Promise<Buffer> {
    const { contents } = await encode(bytes, { columns, format, compression });
    return contents[0] as Buffer;
  }

  test.each(['Parquet', 'CSV', 'JSONLines'] as const)('read a file of %s without rows', async (format) => {
    const { contents } = await encode(copyBytes(columns, []), {
      ...{ columns, format, compression: null, evenEmpty: true },
    });
    const content = contents[0] as Buffer;
    const names = columns.map(({ name }) => name).join(',');
    if (format !== 'Parquet') return expect(content.toString()).toBe(format === 'CSV' ? `${names}\r\n` : '');
    expect(read('pyarrow', content)).toBe('');
    expect(read('duckdb', content)).toBe('');
  });

  test.each([null, ...COMPRESSIONS.Parquet])('see the same rows in Parquet with %s', async (compression) => {
    const content = await written('Parquet', compression);
    expectRows(read('pyarrow', content));
    expectRows(read('duckdb', content));
  });

  test.each([ROWS, 0])('see the same %d rows in a stream of Arrow', async (count) => {
    const chunks: Buffer[] = [];
    await encodeArrow(inChunks(copyBytes(columns, rows.slice(0, count)), 65_536), {
      columns,
      write: async (chunk) => void chunks.push(Buffer.from(chunk)),
    });
    const output = read('arrow', Buffer.concat(chunks));
    if (count > 0) expectRows(output);
    else expect(output).toBe('');
  });

  test('find by statistics what a look at all rows finds', async () => {
    const before = BigInt(Date.parse('1960-01-01T00:00:00Z')) * 1000n;
    const count = rows.filter(
      ([, event, , , at, n]) =>
        event === 'event 4' &&
        at !== null &&
        (at as bigint) < before &&
        n !== null &&
        (n as number) > -14_000,
    ).length;
    expect(count).toBeGreaterThan(0);
    expect(Number(read('duckdb-filter', await written('Parquet', 'zstd')))).toBe(count);
  });

  test('see the same rows in JSON lines with zstd and gzip', async () => {
    const zstd = await written('JSONLines', 'zstd');
    expectRows(read('zstandard', zstd));
    const sum = rows.reduce((total, [, , , , , n]) => total + ((n as number | null) ?? 0), 0);
    expect(read('duckdb-json', zstd).trim()).toBe(`(${ROWS}, ${ROWS}, ${sum})`);
    expectRows(read('gzip', await written('JSONLines', 'gzip')));
  });
});
