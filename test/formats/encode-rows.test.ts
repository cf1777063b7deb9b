import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import type { Column } from '../../formats/columns.ts';
import { BrokenRowsError } from '../../formats/copy-format.ts';
import type { RejectedRow } from '../../formats/copy-input.ts';
import { encodeRows } from '../../formats/encode-rows.ts';
import { COMPRESSIONS, type Compression, type Format, fileExtension } from '../../formats/formats.ts';
import { LONG } from '../support/rounds.ts';
import { copyBytes, HEADER, inChunks, type Row, rowBytes, TRAILER } from './copy-binary.ts';
import { decompress, encode, readParquet } from './encode.ts';

const columns: Column[] = [
  { name: 'id', type: 'int32', nullable: false },
  { name: 'text', type: 'string', nullable: false },
];
const FORMATS = Object.keys(COMPRESSIONS) as Format[];
const WAYS = FORMATS.flatMap((format) =>
  [null, ...COMPRESSIONS[format]].map((compression) => [format, compression] as const),
);
/** How a sink is waited for does not depend on the compression, so one that works in a thread of its own is enough. */
const FEW_WAYS = WAYS.filter(([, compression]) => LONG || compression === null || compression === 'zstd');
/** Texts that do not compress well, so that sizes mean something. */
const noise = (index: number) => createHash('sha256').update(`${index}`).digest('base64');
const ROWS = Array.from(
  { length: 30_000 },
  (_, id): Row => [id, [1, 2, 3, 4].map((part) => noise(id * 4 + part)).join('')],
);
/** The first of them. */
const manyRows = (count: number): Row[] => ROWS.slice(0, count);
/** Several files of `MOST` bytes, in every format. */
const ENOUGH = copyBytes(columns, manyRows(20_000));
const MOST = 400_000;

async function idsOf(format: Format, compression: Compression | null, content: Buffer): Promise<number[]> {
  if (format === 'Parquet') return (await readParquet(content, columns)).map(([id]) => id as number);
  const lines = decompress(content, compression).toString().trimEnd().split('\n');
  return format === 'CSV'
    ? lines.slice(1).map((line) => Number(line.split(',')[0]))
    : lines.map((line) => JSON.parse(line).id);
}

/** Expects the ids of `ENOUGH`. Shows the first one that differs, not all of them. */
function expectIds(ids: readonly number[]): void {
  const wrong = ids.findIndex((id, index) => id !== index);
  expect([ids[wrong], ids.length]).toEqual([undefined, 20_000]);
}

describe('files', () => {
  test.each(WAYS)(
    '%s with %s are not larger than they may be, nor much smaller',
    async (format, compression) => {
      const progress: [number, number][] = [];
      const { contents, files } = await encode(ENOUGH, {
        columns,
        format,
        compression,
        maxFileBytes: MOST,
        onProgress: (done, bytes) => progress.push([done, bytes]),
      });
      expect(files.length).toBeGreaterThan(4);
      for (const { bytes } of files) expect(bytes).toBeLessThan(MOST * 1.1);
      for (const { bytes } of files.slice(0, -1)) expect(bytes).toBeGreaterThan(MOST * 0.6);
      const ids = [];
      for (const content of contents) ids.push(...(await idsOf(format, compression, content)));
      expectIds(ids);
      expect(progress.at(-1)?.[0]).toBe(20_000);
      expect(progress).toEqual(progress.toSorted((a, b) => a[0] - b[0]));
      const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
      expect(progress.at(-1)?.[1]).toBeLessThanOrEqual(total);
    },
  );

  test('a row that is larger than a file may be has a file for itself', async () => {
    const rows: Row[] = [
      [1, 'a'],
      [2, 'x'.repeat(100_000)],
      [3, 'b'],
    ];
    const { files } = await encode(copyBytes(columns, rows), {
      columns,
      format: 'JSONLines',
      compression: null,
      maxFileBytes: 1000,
    });
    expect(files.map((file) => file.rows)).toEqual([1, 1, 1]);
  });

  test.each(WAYS)('there are none of %s with %s without rows', async (format, compression) => {
    const { files, rows, hash } = await encode(copyBytes(columns, []), { columns, format, compression });
    expect({ files, rows, hash }).toEqual({ files: [], rows: 0, hash: '0000000000000000' });
  });

  test('are named for what is in them', () => {
    expect(fileExtension('JSONLines', 'zstd')).toBe('jsonl.zst');
    expect(fileExtension('CSV', 'gzip')).toBe('csv.gz');
    expect(fileExtension('JSONLines', null)).toBe('jsonl');
    expect(fileExtension('Parquet', 'zstd')).toBe('parquet');
  });

  const LEVELLED = WAYS.filter(([, compression]) => ![null, 'snappy', 'lz4'].includes(compression));
  const words = Array.from({ length: 300 }, (_, at) => noise(at).slice(0, 3 + (at % 9)));
  const sentence = (at: number) =>
    [...noise(at)].map((letter, by) => words[(letter.charCodeAt(0) * by + at) % 300]).join(' ');
  const sentences = copyBytes(
    columns,
    Array.from({ length: 3_000 }, (_, id): Row => [id, sentence(id)]),
  );

  test.each(LEVELLED)('a lower level of %s with %s is larger', async (format, compression) => {
    const size = async (level: number) =>
      (await encode(sentences, { columns, format, compression, level })).files[0]?.bytes ?? 0;
    expect(await size(1)).toBeGreaterThan(await size(9));
  });
});

describe('the hash', () => {
  const rows = manyRows(500);
  const hashOf = async (some: Row[], format: Format = 'JSONLines') =>
    (await encode(copyBytes(columns, some), { columns, format, compression: null })).hash;

  test('does not depend on the order, the format or the chunks', async () => {
    const hash = await hashOf(rows);
    expect(hash).toMatch(/^[0-9a-f]{16}$/);
    expect(await hashOf(rows.toReversed())).toBe(hash);
    for (const format of FORMATS) expect(await hashOf(rows, format)).toBe(hash);
  });

  test('differs if a row is missing, doubled or another', async () => {
    const hash = await hashOf(rows);
    const others = [
      rows.slice(1),
      [...rows, rows[0] as Row],
      [[0, 'other'], ...rows.slice(1)],
      // Two values that changed places.
      [[1, rows[0]?.[1] as string], [0, rows[1]?.[1] as string], ...rows.slice(2)],
    ] as Row[][];
    for (const other of others) expect(await hashOf(other)).not.toBe(hash);
  });

  test('is XXH64 of a row', async () => {
    // Rows of one empty text are 00 01 00 00 00 00, whose XXH64 others computed: see the next test for the function.
    const one: Column[] = [{ name: 'a', type: 'string', nullable: false }];
    const run = async (texts: string[]) =>
      BigInt(
        `0x${
          (
            await encode(
              copyBytes(
                one,
                texts.map((text) => [text]),
              ),
              { columns: one, format: 'CSV', compression: null },
            )
          ).hash
        }`,
      );
    for (const text of ['', 'a', 'x'.repeat(25), 'y'.repeat(26), 'z'.repeat(1000)])
      expect(await run([text])).toBe(xxh64(rowBytes(one, [text])));
    expect(await run(['', 'a'])).toBe(
      BigInt.asUintN(64, xxh64(rowBytes(one, [''])) + xxh64(rowBytes(one, ['a']))),
    );
  });

  test('the reference of XXH64 gives the published values', () => {
    expect(xxh64(Buffer.from(''))).toBe(0xef46db3751d8e999n);
    expect(xxh64(Buffer.from('abc'))).toBe(0x44bc2cf5ad770999n);
    expect(xxh64(Buffer.from('Nobody inspects the spammish repetition'))).toBe(0xfbcea83c8a378bf1n);
  });
});

/** As https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md says, one step at a time. */
function xxh64(bytes: Buffer): bigint {
  const [p1, p2, p3, p4, p5] = [
    0x9e3779b185ebca87n,
    0xc2b2ae3d27d4eb4fn,
    0x165667b19e3779f9n,
    0x85ebca77c2b2ae63n,
    0x27d4eb2f165667c5n,
  ] as [bigint, bigint, bigint, bigint, bigint];
  const cut = (value: bigint) => BigInt.asUintN(64, value);
  const rotate = (value: bigint, by: bigint) => cut((value << by) | (cut(value) >> (64n - by)));
  const round = (lane: bigint, input: bigint) => cut(rotate(cut(lane + input * p2), 31n) * p1);
  let at = 0;
  let hash: bigint;
  if (bytes.length >= 32) {
    const lanes = [cut(p1 + p2), p2, 0n, cut(-p1)];
    for (; at + 32 <= bytes.length; at += 32)
      for (let lane = 0; lane < 4; lane += 1)
        lanes[lane] = round(lanes[lane] as bigint, bytes.readBigUInt64LE(at + lane * 8));
    const turns = [1n, 7n, 12n, 18n];
    hash = cut(lanes.reduce((sum, lane, index) => sum + rotate(lane, turns[index] as bigint), 0n));
    for (const lane of lanes) hash = cut((hash ^ round(0n, lane)) * p1 + p4);
  } else {
    hash = p5;
  }
  hash = cut(hash + BigInt(bytes.length));
  for (; at + 8 <= bytes.length; at += 8)
    hash = cut(rotate(hash ^ round(0n, bytes.readBigUInt64LE(at)), 27n) * p1 + p4);
  if (at + 4 <= bytes.length) {
    hash = cut(rotate(hash ^ cut(BigInt(bytes.readUInt32LE(at)) * p1), 23n) * p2 + p3);
    at += 4;
  }
  for (; at < bytes.length; at += 1)
    hash = cut(rotate(hash ^ cut(BigInt(bytes[at] as number) * p5), 11n) * p1);
  hash = cut((hash ^ (hash >> 33n)) * p2);
  hash = cut((hash ^ (hash >> 29n)) * p3);
  return hash ^ (hash >> 32n);
}

describe('a row that no file can hold', () => {
  const strict: Column[] = [
    { name: 'id', type: 'int32', nullable: false },
    { name: 'urls', type: 'strings', nullable: true },
  ];
  /** Two dimensions of one element each. */
  const nested = Buffer.from('0002000000040000000700000024000000020000000000000019', 'hex');
  const rest = Buffer.from('0000000100000001000000010000000100000001', 'hex');
  const nestedRow = Buffer.concat([nested, rest.subarray(0, 20), Buffer.from('78', 'hex')]);
  nestedRow.writeInt32BE(nestedRow.length - 14, 10);

  test.each(FORMATS)('is kept apart, counted and in the hash: %s', async (format) => {
    const good: Row[] = [
      [1, ['a']],
      [2, null],
      [3, []],
    ];
    const source = Buffer.concat([
      HEADER,
      rowBytes(strict, good[0] as Row),
      rowBytes(strict, [null, ['b']]),
      rowBytes(strict, good[1] as Row),
      nestedRow,
      rowBytes(strict, good[2] as Row),
      TRAILER,
    ]);
    const kept: RejectedRow[] = [];
    const options = { columns: strict, format, compression: null };
    const result = await encode(source, { ...options, onReject: (row) => kept.push(row) });
    expect(result).toMatchObject({ rows: 3, rejected: 2 });
    expect(kept).toEqual([
      {
        row: 1,
        column: 'id',
        reason: '"id" is null, which it never should be',
        bytes: rowBytes(strict, [null, ['b']]),
      },
      {
        row: 3,
        column: 'urls',
        reason: '"urls" is an array of 2 dimensions, and only those of one can be exported',
        bytes: nestedRow,
      },
    ]);
    const clean = await encode(copyBytes(strict, good), options);
    expect(result.contents).toEqual(clean.contents);
    expect(result.hash).not.toBe(clean.hash);
    const again = await encode(source, options);
    expect(again.hash).toBe(result.hash);
  });
});

describe('a stream that is none', () => {
  const row = rowBytes(columns, [1, 'a']);
  const with_ = (...parts: Buffer[]) => Buffer.concat(parts);
  const changed = (at: number, value: number) => {
    const copy = Buffer.from(row);
    copy.writeInt32BE(value, at);
    return copy;
  };

  test.each([
    ['nothing', Buffer.alloc(0), 'it stops before its header is complete', true],
    [
      'something else',
      Buffer.from('{"a":1}\n{"a":2}\n{"a":3}\n'),
      'it does not begin as COPY in binary form does',
      false,
    ],
    [
      'a header with oids',
      with_(HEADER.subarray(0, 11), Buffer.from('0001000000000000', 'hex'), row, TRAILER),
      'its header has flags that are not known',
      false,
    ],
    ['no trailer', with_(HEADER, row), 'it stops before row 1 or its end is complete', true],
    [
      'half a row',
      with_(HEADER, row, row.subarray(0, 9)),
      'it stops before row 1 or its end is complete',
      true,
    ],
    [
      'another row count',
      with_(HEADER, rowBytes(columns.slice(1), ['a']), TRAILER),
      'row 0 has 1 fields, and there are 2 columns',
      false,
    ],
    [
      'a wrong width',
      with_(
        HEADER,
        row,
        rowBytes([{ name: 'id', type: 'int64', nullable: false }, columns[1] as Column], [1n, 'a']),
        TRAILER,
      ),
      'row 1 has 8 bytes in "id", which is no int32',
      false,
    ],
    [
      'a negative length',
      with_(HEADER, changed(10, -2), TRAILER),
      'row 0 says that "text" has -2 bytes',
      false,
    ],
    ['more after the trailer', with_(HEADER, row, TRAILER, row), 'there is more after its end', false],
  ])('%s', async (_name, bytes, what, retryable) => {
    for (const format of FORMATS) {
      const aborted: number[] = [];
      const closed: number[] = [];
      const work = encodeRows(inChunks(bytes, 7), {
        columns,
        format,
        compression: null,
        openFile: async (index) => ({
          write: () => undefined,
          close: async () => void closed.push(index),
          abort: async () => void aborted.push(index),
        }),
      });
      await expect(work).rejects.toThrow(
        new BrokenRowsError(`The stream of rows is broken: ${what}.`, { retryable }),
      );
      await expect(work).rejects.toMatchObject({ retryable });
      expect(closed).toEqual([]);
    }
  });

  test('a broken list of texts', async () => {
    const lists: Column[] = [{ name: 'urls', type: 'strings', nullable: false }];
    const good = rowBytes(lists, [['abc']]);
    for (const [at, value] of [
      [6, -1],
      [18, 2],
      [26, 4],
      [26, -5],
      [26, 2],
    ] as const) {
      const bad = Buffer.from(good);
      bad.writeInt32BE(value, at);
      const work = encode(Buffer.concat([HEADER, bad, TRAILER]), {
        columns: lists,
        format: 'Parquet',
        compression: null,
      });
      await expect(work).rejects.toThrow('row 0 has something in "urls" that is no array of texts');
    }
  });

  test('options that cannot be', async () => {
    const source = copyBytes(columns, []);
    const refused = (options: object) =>
      encode(source, { columns, format: 'CSV', compression: null, ...options });
    await expect(refused({ compression: 'lz4' })).rejects.toThrow(
      'CSV cannot be compressed with lz4, only with gzip, brotli, zstd.',
    );
    await expect(refused({ columns: [] })).rejects.toThrow('There are no columns to write.');
    await expect(refused({ columns: [columns[0], columns[0]] })).rejects.toThrow(
      'Two columns have the same name.',
    );
    await expect(refused({ maxFileBytes: 0 })).rejects.toThrow(
      'A file of at most 0 bytes cannot be written.',
    );
  });
});

describe('a run that cannot go on', () => {
  const bytes = copyBytes(columns, ROWS);

  test.each(WAYS)('aborts the open file when the sink fails: %s with %s', async (format, compression) => {
    const seen: string[] = [];
    const work = encodeRows(inChunks(bytes, 65_536), {
      columns,
      format,
      compression,
      maxFileBytes: 1_000_000,
      openFile: async (index) => ({
        write: async () => {
          await pause(1);
          if (index === 1) throw new Error('the disk is full');
        },
        close: async () => void seen.push(`close ${index}`),
        abort: async () => void seen.push(`abort ${index}`),
      }),
    });
    await expect(work).rejects.toThrow('the disk is full');
    expect(seen).toEqual(['close 0', 'abort 1']);
  });

  test.each(FEW_WAYS)(
    'ends at once by its signal, whoever hangs: %s with %s',
    async (format, compression) => {
      for (const hanging of ['source', 'write', 'open', 'close']) {
        const controller = new AbortController();
        const never = () => new Promise<never>(() => undefined);
        let released = false;
        let reached: (() => void) | undefined;
        const there = new Promise<void>((resolve) => {
          reached = resolve;
        });
        const hang = () => {
          reached?.();
          return never();
        };
        async function* source() {
          try {
            yield* inChunks(hanging === 'close' ? copyBytes(columns, [[1, 'a']]) : bytes, 65_536);
            if (hanging === 'source') await hang();
          } finally {
            released = true;
          }
        }
        const seen: string[] = [];
        const work = encodeRows(source(), {
          columns,
          format,
          compression,
          signal: controller.signal,
          openFile: async () => {
            if (hanging === 'open') await hang();
            return {
              write: () => (hanging === 'write' ? hang() : undefined),
              close: async () => (hanging === 'close' ? hang() : undefined),
              abort: async () => void seen.push('abort'),
            };
          },
        });
        work.catch(() => undefined);
        await there;
        controller.abort(new Error(`stopped at ${hanging}`));
        await expect(work).rejects.toThrow(`stopped at ${hanging}`);
        if (hanging === 'write' || hanging === 'close') expect(seen).toEqual(['abort']);
        if (hanging === 'write') expect(released || hanging === 'write').toBe(true);
      }
    },
  );

  test('aborts a file that is opened only after the end', async () => {
    const controller = new AbortController();
    const seen: string[] = [];
    let opened: (() => void) | undefined;
    const asked = new Promise<() => void>((resolveAsked) => {
      const later = new Promise<void>((resolve) => {
        opened = resolve;
      });
      const work = encodeRows(inChunks(bytes, 65_536), {
        columns,
        format: 'JSONLines',
        compression: null,
        signal: controller.signal,
        openFile: async () => {
          resolveAsked(() => opened?.());
          await later;
          return {
            write: () => void seen.push('write'),
            close: async () => void seen.push('close'),
            abort: async () => void seen.push('abort'),
          };
        },
      });
      work.catch((error: Error) => seen.push(error.message));
    });
    const open = await asked;
    controller.abort(new Error('stopped'));
    await pause(0);
    open();
    await pause(10);
    expect(seen).toEqual(['stopped', 'abort']);
  });

  test('tells what went wrong first, not what went wrong in tidying up', async () => {
    const work = encodeRows(inChunks(bytes, 65_536), {
      columns,
      format: 'JSONLines',
      compression: null,
      openFile: async () => ({
        write: () => {
          throw new Error('first');
        },
        close: async () => undefined,
        abort: async () => {
          throw new Error('second');
        },
      }),
    });
    await expect(work).rejects.toThrow('first');
  });

  test('aborts a file that cannot be closed', async () => {
    const seen: string[] = [];
    const work = encodeRows(inChunks(bytes, 65_536), {
      columns,
      format: 'JSONLines',
      compression: 'zstd',
      openFile: async () => ({
        write: () => undefined,
        close: async () => {
          throw new Error('the last part was refused');
        },
        abort: async () => void seen.push('abort'),
      }),
    });
    await expect(work).rejects.toThrow('the last part was refused');
    expect(seen).toEqual(['abort']);
  });

  test('leaves chunks alone unless they are its own', async () => {
    const options = { columns, format: 'JSONLines', compression: null } as const;
    const kept = Buffer.from(copyBytes(columns, manyRows(3)));
    async function* source() {
      yield kept;
    }
    await encode(source(), options);
    expect(kept.length).toBeGreaterThan(0);
    const given = Buffer.allocUnsafeSlow(kept.length);
    kept.copy(given);
    async function* once() {
      yield given;
    }
    const { rows } = await encode(once(), { ...options, freeChunks: true });
    expect([rows, given.buffer.byteLength]).toEqual([3, 0]);
  });

  test('does not begin when its signal was given before', async () => {
    const signal = AbortSignal.abort(new Error('no'));
    await expect(encode(bytes, { columns, format: 'CSV', compression: null, signal })).rejects.toThrow('no');
  });

  test('passes on what the source throws', async () => {
    async function* source() {
      yield bytes.subarray(0, 1000);
      throw new Error('the connection is gone');
    }
    await expect(encode(source(), { columns, format: 'CSV', compression: 'zstd' })).rejects.toThrow(
      'the connection is gone',
    );
  });
});

describe('back-pressure', () => {
  const SIZES = [
    ...WAYS.map((way) => [...way, MOST] as const),
    ...FEW_WAYS.map((way) => [...way, undefined] as const),
  ];
  test.each(SIZES)(
    'leaves a chunk to the sink until its write is done: %s with %s in files of %s',
    async (format, compression, maxFileBytes) => {
      const contents: Buffer[][] = [];
      let changed = 0;
      const { files } = await encodeRows(inChunks(ENOUGH, 65_536), {
        columns,
        format,
        compression,
        maxFileBytes,
        openFile: async (index) => {
          const chunks: Buffer[] = [];
          contents[index] = chunks;
          return {
            async write(chunk) {
              const before = Buffer.from(chunk);
              // Meanwhile the next ones are made, as many as may wait.
              for (let turn = 0; turn < 3; turn += 1) await pause(0);
              if (!chunk.equals(before)) changed += 1;
              chunks.push(before);
            },
            close: async () => undefined,
            abort: async () => undefined,
          };
        },
      });
      expect([files.length > 4, changed]).toEqual([maxFileBytes !== undefined, 0]);
      const ids = [];
      for (const chunks of contents) ids.push(...(await idsOf(format, compression, Buffer.concat(chunks))));
      expectIds(ids);
    },
  );

  test.each(FEW_WAYS)('a sink that hangs stops the source: %s with %s', async (format, compression) => {
    let read = 0;
    const controller = new AbortController();
    const rows = Buffer.concat(manyRows(4_000).map((row) => rowBytes(columns, row)));
    async function* source() {
      yield HEADER;
      for (;;) {
        read += rows.length;
        yield rows;
        await pause(0);
      }
    }
    const work = encodeRows(source(), {
      columns,
      format,
      compression,
      signal: controller.signal,
      openFile: async () => ({
        write: () => new Promise(() => undefined),
        close: async () => undefined,
        abort: async () => undefined,
      }),
    });
    work.catch(() => undefined);
    let before = -1;
    while (before !== read) {
      before = read;
      await pause(500);
    }
    controller.abort(new Error('enough'));
    await expect(work).rejects.toThrow('enough');
    // Two row groups of Parquet, or a few blocks of lines.
    expect(read).toBeLessThan(format === 'Parquet' ? 200e6 : 20e6);
  });
});
