import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { COMPRESSIONS, type Compression, type Format } from '../../formats/formats.ts';
import { rounds } from '../support/rounds.ts';
import { table } from './arbitrary.ts';
import { copyBytes, inChunks } from './copy-binary.ts';
import { decompress, encode, readParquet } from './encode.ts';
import { csvLine, jsonLine, parquetValue } from './expected.ts';

const ways = (Object.keys(COMPRESSIONS) as Format[]).flatMap((format) =>
  [null, ...COMPRESSIONS[format]].map((compression) => ({ format, compression })),
) as { format: Format; compression: Compression | null }[];

const runs = (usual: number) => rounds(usual, usual * 10);

const csvName = (name: string) => (/[",\r\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);

describe('whatever the columns, the rows and the chunks they come in', () => {
  test.each(ways)('$format with $compression says what was in the rows', async ({ format, compression }) => {
    await fc.assert(
      fc.asyncProperty(table, fc.integer({ min: 1, max: 500 }), async ({ columns, rows }, size) => {
        const source = inChunks(copyBytes(columns, rows), size);
        const { contents, ...result } = await encode(source, { columns, format, compression });
        expect(result).toMatchObject({ rows: rows.length, rejected: 0 });
        expect(contents.length).toBe(rows.length > 0 ? 1 : 0);
        const [content] = contents;
        if (!content) return;
        if (format === 'Parquet') {
          const wanted = rows.map((row) =>
            columns.map(({ type }, index) => parquetValue(type, row[index] ?? null)),
          );
          expect(await readParquet(content, columns)).toEqual(wanted);
          return;
        }
        const text = decompress(content, compression).toString();
        const header = `${columns.map(({ name }) => csvName(name)).join(',')}\r\n`;
        const line = format === 'CSV' ? csvLine : jsonLine;
        expect(text).toBe((format === 'CSV' ? header : '') + rows.map((row) => line(columns, row)).join(''));
        expect(result.files[0]?.uncompressedBytes).toBe(Buffer.byteLength(text));
      }),
      { numRuns: compression === 'brotli' ? runs(8) : runs(20) },
    );
  });

  test('every JSON line is JSON', async () => {
    await fc.assert(
      fc.asyncProperty(table, async ({ columns, rows }) => {
        const { contents } = await encode(copyBytes(columns, rows), {
          columns,
          format: 'JSONLines',
          compression: null,
        });
        const lines = contents.join('').split('\n').slice(0, -1);
        expect(lines.length).toBe(rows.length);
        for (const line of lines) expect(Object.keys(JSON.parse(line)).length).toBe(columns.length);
      }),
      { numRuns: runs(50) },
    );
  });

  test('files of few bytes hold together what one would', async () => {
    await fc.assert(
      fc.asyncProperty(
        table,
        fc.constantFrom(...ways),
        fc.integer({ min: 1, max: 3000 }),
        async ({ columns, rows }, { format, compression }, maxFileBytes) => {
          const source = copyBytes(columns, rows);
          const { contents } = await encode(source, { columns, format, compression, maxFileBytes });
          const parts = await Promise.all(
            contents.map(async (content) =>
              format === 'Parquet'
                ? readParquet(content, columns)
                : decompress(content, compression).toString(),
            ),
          );
          if (format === 'Parquet') {
            expect(parts.flat()).toEqual(
              rows.map((row) => columns.map(({ type }, index) => parquetValue(type, row[index] ?? null))),
            );
          } else {
            const header =
              format === 'CSV' ? `${columns.map(({ name }) => csvName(name)).join(',')}\r\n` : '';
            for (const part of parts) expect((part as string).startsWith(header)).toBe(true);
            const line = format === 'CSV' ? csvLine : jsonLine;
            const bodies = parts.map((part) => (part as string).slice(header.length));
            expect(bodies.join('')).toBe(rows.map((row) => line(columns, row)).join(''));
          }
        },
      ),
      { numRuns: runs(40) },
    );
  });
});
