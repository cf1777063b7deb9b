import { isDeepStrictEqual } from 'node:util';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { from } from 'pg-copy-streams';
import { copyOut } from '../../db/copy-out.ts';
import type { Column } from '../../formats/columns.ts';
import { COMPRESSIONS, type Format } from '../../formats/formats.ts';
import { databaseForFile } from '../support/database.ts';
import { decompress, encode, readParquet } from './encode.ts';

const database = databaseForFile();

const EVENTS: Column[] = [
  { name: 'uuid', type: 'uuid', nullable: false },
  { name: 'event', type: 'string', nullable: false },
  { name: 'distinct_id', type: 'string', nullable: false },
  { name: 'team_id', type: 'int32', nullable: false },
  { name: 'timestamp', type: 'timestamp', nullable: false },
  { name: '_inserted_at', type: 'timestamp', nullable: false },
  { name: 'properties', type: 'json', nullable: false },
  { name: 'session_id', type: 'string', nullable: true },
  { name: 'person_id', type: 'uuid', nullable: false },
  { name: 'person_properties', type: 'json', nullable: false },
  { name: 'historical', type: 'bool', nullable: false },
];
const SELECT = `select uuid, event, distinct_id, project_id as team_id, timestamp, inserted_at as _inserted_at, properties,
  session_id, person_id, person_properties, historical from events order by distinct_id`;

/** What came out, as Postgres compares it: both sides become the same text. */
async function normalised(sql: string): Promise<string[]> {
  const { rows } = await database.pool.query(sql);
  return rows.map((row) => row.row);
}

beforeAll(async () => {
  await database.pool.query(`
    insert into organizations (id, name, slug) values ('00000000-0000-7000-8000-000000000000', 'test', 'test');
    insert into projects (uuid, organization_id, name, api_token)
      values (gen_random_uuid(), '00000000-0000-7000-8000-000000000000', 'test', 'phc_test');
    insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id, properties,
      session_id, elements_chain, person_id, person_mode, person_properties)
    select (select id from projects), gen_random_uuid(), now() - make_interval(secs => i * 12345.678901), now(), now(),
      i % 3 = 0, case when i % 7 = 0 then E'tab\\tquote" back\\\\ 😀' else 'event ' || i % 5 end,
      'user ' || to_char(i, 'FM00000'),
      (E'{"a": "é\\\\n' || i || E'",\\n "b":' || i || ', "deep": {"x": [1, 2.5e3, null, true]}}')::json,
      case when i % 4 = 0 then null else 'session ' || i / 10 end, '', gen_random_uuid(), 'full', '{"plan":"free"}'
    from generate_series(1, 5000) i`);
});

describe('events of a real Postgres', () => {
  const ways = (Object.keys(COMPRESSIONS) as Format[]).flatMap((format) =>
    [null, ...COMPRESSIONS[format]].map((compression) => [format, compression] as const),
  );

  test.each(ways)('in %s with %s are what row_to_json says', async (format, compression) => {
    const source = copyOut(database.pool, `copy (${SELECT}) to stdout (format binary)`);
    const { contents, rows } = await encode(source, { columns: EVENTS, format, compression });
    expect(rows).toBe(5_000);
    const { rows: said } = await database.pool.query(`select row_to_json(e) as row from (${SELECT}) e`);
    const instant = (text: string) => new Date(text).getTime();
    const wanted = said.map(({ row }) => ({
      ...row,
      timestamp: instant(row.timestamp),
      _inserted_at: instant(row._inserted_at),
    }));
    const content = contents[0] as Buffer;
    let got: Record<string, unknown>[];
    if (format === 'Parquet') {
      got = (await readParquet(content, EVENTS)).map((values) => {
        const row = Object.fromEntries(values.map((value, index) => [EVENTS[index]?.name, value]));
        for (const name of ['timestamp', '_inserted_at']) row[name] = Number((row[name] as bigint) / 1000n);
        for (const name of ['properties', 'person_properties']) row[name] = JSON.parse(row[name] as string);
        return row;
      });
    } else {
      const text = decompress(content, compression).toString();
      got =
        format === 'JSONLines'
          ? text
              .trimEnd()
              .split('\n')
              .map((line) => JSON.parse(line))
          : readCsv(text);
      got = got.map((row) => ({
        ...row,
        timestamp: instant(row.timestamp as string),
        _inserted_at: instant(row._inserted_at as string),
      }));
    }
    expect(got.length).toBe(wanted.length);
    const different = got.findIndex((row, index) => !isDeepStrictEqual(row, wanted[index]));
    expect(got[different]).toEqual(wanted[different]);
  });

  /** As RFC 4180 says; what stands empty is null. */
  function readCsv(text: string): Record<string, unknown>[] {
    const records: (string | null)[][] = [[]];
    const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy;
    for (const [, quoted, plain, end] of text.matchAll(cell)) {
      records.at(-1)?.push(quoted === undefined ? plain || null : quoted.replaceAll('""', '"'));
      if (end === '\r\n') records.push([]);
    }
    const [header = [], ...rest] = records.slice(0, -1);
    return rest.map((record) => {
      const row = Object.fromEntries(header.map((name, index) => [name, record[index]])) as Record<
        string,
        unknown
      >;
      for (const name of ['properties', 'person_properties']) row[name] = JSON.parse(row[name] as string);
      return { ...row, team_id: Number(row.team_id), historical: row.historical === 'true' };
    });
  }
});

describe('values of every type', () => {
  const columns: Column[] = [
    { name: 'i', type: 'int32', nullable: true },
    { name: 'b', type: 'int64', nullable: true },
    { name: 'f', type: 'float64', nullable: true },
    { name: 't', type: 'timestamp', nullable: true },
    { name: 'l', type: 'strings', nullable: true },
    { name: 'j', type: 'json', nullable: true },
    { name: 's', type: 'string', nullable: true },
  ];
  const values = `
    select * from (values
      (1, 2::int8, 0.1::float8, timestamptz '2026-11-21 16:00:00.123456+00', array['a', null, 'b"'], '{"a": 1}'::jsonb, 'x'),
      (-2147483648, -9223372036854775808, 1e-300, timestamptz '0001-01-01 00:00:00+00', '{}', '[]', ''),
      (2147483647, 9223372036854775807, 1.7976931348623157e308, timestamptz '9999-12-31 23:59:59.999999+00', array[''], 'null', E'\\x01\\n\\t'),
      (0, 0, 'NaN', 'infinity', null, '"é"', 'é😀'),
      (null, null, '-Infinity', '-infinity', array['x'], null, null),
      (null, null, 'Infinity', null, array['x'], null, null),
      (7, 7, -1234567.891, timestamptz '1969-12-31 23:59:59.999999+00', array['a', 'b'], '1.50', '"')
    ) as v (i, b, f, t, l, j, s)`;

  test('are in JSON lines what Postgres says in JSON', async () => {
    const source = copyOut(database.pool, `copy (${values}) to stdout (format binary)`);
    const { contents } = await encode(source, { columns, format: 'JSONLines', compression: null });
    // Postgres reads the lines itself and writes them as it writes its own.
    const lines = contents.join('').trimEnd().split('\n');
    const record = '(i int, b int8, f float8, t timestamptz, l text[], j jsonb, s text)';
    const read = await Promise.all(
      lines.map(async (line) => {
        const { rows } = await database.pool.query(
          `select row_to_json(v)::text as row from json_to_record($1::json) as v ${record}`,
          [line],
        );
        return rows[0].row;
      }),
    );
    expect(read).toEqual(await normalised(`select row_to_json(v)::text as row from (${values}) v`));
  });

  test('are read from CSV by Postgres as they were', async () => {
    const plain = columns.filter(({ type }) => type !== 'strings');
    const names = plain.map(({ name }) => name).join(', ');
    const narrow = copyOut(
      database.pool,
      `copy (select ${names} from (${values}) v) to stdout (format binary)`,
    );
    const { contents } = await encode(narrow, { columns: plain, format: 'CSV', compression: null });
    const client = await database.pool.connect();
    try {
      await client.query(
        'create temporary table back (i int, b int8, f float8, t timestamptz, j jsonb, s text)',
      );
      const stream = client.query(from('copy back from stdin (format csv, header match)'));
      stream.end(contents.join(''));
      await new Promise((resolve, reject) => stream.once('finish', resolve).once('error', reject));
      const { rows } = await client.query('select row_to_json(k)::text as row from back k');
      expect(rows.map(({ row }) => row)).toEqual(
        await normalised(`select row_to_json(v)::text as row from (select ${names} from (${values}) v) v`),
      );
    } finally {
      client.release(true);
    }
  });
});
