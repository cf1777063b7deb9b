import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import type { Column } from '../../formats/columns.ts';
import { encodeResult } from '../../queries/reads/encode-result.ts';
import { capturedEvent } from '../capture/support.ts';
import { apiForFile, tenantsForFile } from '../support/api.ts';
import { findPythonPackages } from '../support/python-packages.ts';
import { askForFile, fileOf, LONG, many, OVERFLOW, type ResultFormat, select } from './result-files.ts';

const { found, reason } = findPythonPackages('parquet-readers', [
  'pyarrow==26.0.1',
  'duckdb==1.5.5',
  'zstandard==0.25.0',
  'pytz',
]);
if (!found) process.stderr.write(`Results in Arrow are not read: ${reason}\n`);
const folder = mkdtempSync(path.join(tmpdir(), 'sluice-results-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const api = apiForFile();
const { anna, otto } = tenantsForFile(api, 'anna', 'otto');
const NOON = Date.UTC(2026, 2, 10, 12);
let url: URL;

beforeAll(async () => {
  url = new URL(await api.app.listen({ host: '127.0.0.1', port: 0 }));
  await api.ingest.submit({
    projectId: anna.projectId,
    events: [
      capturedEvent({
        ...{ event: 'buy', distinct_id: 'ada', timestamp: NOON },
        properties: { note: 'a "b", c\nd', price: 10, tags: ['x', 'y'] },
      }),
      capturedEvent({ index: 1, event: 'look', distinct_id: 'bob', timestamp: NOON + 1_500 }),
    ],
  });
  await api.ingest.submit({
    projectId: otto.projectId,
    events: [capturedEvent({ event: 'secret', distinct_id: 'otto', timestamp: NOON })],
  });
});

const ofAnna = (query: string, format: ResultFormat) => fileOf(url, anna, query, format);
const post = (query: object, format: string, more: object = {}) => askForFile(url, anna, query, format, more);

const READ = `
import json, sys
sys.path.insert(0, sys.argv[1])
kind, name = sys.argv[2], sys.argv[3]
import pyarrow as pa

# JavaScript reads no larger numbers.
def plain(row):
    return [str(value) if type(value) is int and value > 2 ** 53 else value for value in row]

if kind == 'duckdb':
    import duckdb
    cursor = duckdb.connect().execute("select * from read_parquet(?)", [name])
    rows = [plain(row) for row in cursor.fetchall()]
    types = [[column[0], str(column[1])] for column in cursor.description]
    print(json.dumps({'types': types, 'rows': rows}, default=str))
else:
    if kind == 'arrow':
        table = pa.ipc.open_stream(open(name, 'rb')).read_all()
        groups = None
    elif kind == 'parquet':
        import pyarrow.parquet as pq
        file = pq.ParquetFile(name)
        table, groups = file.read(), file.num_row_groups
    elif kind == 'csv':
        import pyarrow.csv
        table, groups = pyarrow.csv.read_csv(name, parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True)), None
    elif kind == 'jsonl':
        import pyarrow.json
        table, groups = pyarrow.json.read_json(name), None
    table.validate(full=True)
    types = [[field.name, str(field.type)] for field in table.schema]
    if len(sys.argv) > 4:
        # Many rows: what is the same of all of them.
        import pyarrow.compute as pc
        n = table['n']
        print(json.dumps({'rows': table.num_rows, 'groups': groups, 'sum': pc.sum(n).as_py(), 'different': pc.count_distinct(n).as_py()}))
    else:
        rows = [plain(row.values()) for row in table.to_pylist()]
        print(json.dumps({'types': types, 'rows': rows}, default=str))
`;

/** What a reader in Python finds in a file. */
function read(kind: ResultFormat | 'duckdb', content: Buffer, ...more: string[]) {
  const file = path.join(folder, 'result');
  writeFileSync(file, content);
  const { status, stdout, stderr } = spawnSync(
    'python3',
    ['-c', READ, found as string, kind, file, ...more],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

describe('the whole result of a query', () => {
  const SELECT =
    "select event, toFloat(properties.price) as price, properties.note as note, timestamp as at, event = 'buy' as buys, length(event) as letters from events order by at";

  test('is CSV', async () => {
    expect((await ofAnna(SELECT, 'csv')).toString()).toBe(
      'event,price,note,at,buys,letters\r\n' +
        'buy,10,"a ""b"", c\nd",2026-03-10T12:00:00.000000Z,true,3\r\n' +
        'look,,,2026-03-10T12:00:01.500000Z,false,4\r\n',
    );
  });
  test('is CSV without formulas, if it is asked for', async () => {
    const query = select(
      "select arrayJoin(['=1+1', '+a', '-2', '-2.5e3', '-x', '@a', '\\tx', 'a=1', '', '+']) as `=name`, '=n' = '=n' as b",
    );
    const cells = async (more: string) => {
      const to = new URL(`/api/projects/${anna.projectId}/query/?format=csv${more}`, url);
      const headers = { authorization: `Bearer ${anna.key}`, 'content-type': 'application/json' };
      const answer = await fetch(to, { method: 'POST', headers, body: JSON.stringify({ query }) });
      return (await answer.text()).replaceAll(',true', '').trimEnd().split('\r\n');
    };
    const plain = ['=name,b', '=1+1', '+a', '-2', '-2.5e3', '-x', '@a', '\tx', 'a=1', '""', '+'];
    expect(await cells('')).toEqual(plain);
    expect(await cells('&escape_formulas=true')).toEqual(
      plain.map((text) => (['-2', '-2.5e3', 'a=1', '""'].includes(text) ? text : `'${text}`)),
    );
  });
  const listed = { kind: 'EventsQuery', select: ['arrayJoin(range(60000)) as n'], after: 'all' };
  test.each<[query: object, rows: number]>([
    [select('select arrayJoin(range(60000)) as n from events limit 200000'), 120_000],
    [select('select arrayJoin(range(60000)) as n from events'), 120_000],
    [listed, 120_000],
    [{ ...listed, limit: 5 }, 5],
  ])('is as long without formulas as with them: %j', async (query, rows) => {
    const lines = async (more: string) =>
      (await (await post(query, `csv${more}`)).text()).split('\r\n').length;
    // A header and the end.
    const expected = rows + 2;
    expect([await lines(''), await lines('&escape_formulas=true')]).toEqual([expected, expected]);
  });
  test('is JSON lines', async () => {
    const lines = (await ofAnna(SELECT, 'jsonl')).toString().trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      {
        ...{ event: 'buy', price: 10, note: 'a "b", c\nd', at: '2026-03-10T12:00:00.000000Z' },
        ...{ buys: true, letters: 3 },
      },
      {
        ...{ event: 'look', price: null, note: null, at: '2026-03-10T12:00:01.500000Z' },
        ...{ buys: false, letters: 4 },
      },
    ]);
  });
  test('is Parquet', async () => {
    const file = Uint8Array.from(await ofAnna(SELECT, 'parquet')).buffer;
    expect(await parquetReadObjects({ file })).toEqual([
      {
        ...{ event: 'buy', price: 10, note: 'a "b", c\nd', at: new Date(NOON) },
        ...{ buys: true, letters: 3n },
      },
      {
        ...{ event: 'look', price: null, note: null, at: new Date(NOON + 1_500) },
        ...{ buys: false, letters: 4n },
      },
    ]);
  });
  test('is CSV or Parquet without rows, too', async () => {
    const none = 'select event, timestamp as at from events where false';
    expect((await ofAnna(none, 'csv')).toString()).toBe('event,at\r\n');
    expect((await ofAnna(none, 'jsonl')).toString()).toBe('');
    const file = Uint8Array.from(await ofAnna(none, 'parquet')).buffer;
    expect(parquetMetadata(file).schema.map((one) => one.name)).toEqual(['schema', 'event', 'at']);
  });
  test('is that of a list of events, with the parts of its columns side by side', async () => {
    const query = { kind: 'EventsQuery', select: ['*', 'person_display_name'], after: 'all', limit: 1 };
    const answer = await post(query, 'jsonl');
    expect(await answer.json()).toMatchObject({
      ...{ event: 'look', distinct_id: 'bob', timestamp: '2026-03-10T12:00:01.500000Z' },
      ...{ properties: {}, 'person_display_name.distinct_id': 'bob' },
    });
  });

  test('has a type and a name, and is asked for in three ways', async () => {
    const query = select('select 1 as one');
    const to = new URL(`/api/projects/${anna.projectId}/query/`, url);
    const ask = (more: object, headers: Record<string, string> = {}) =>
      fetch(to, {
        method: 'POST',
        headers: { authorization: `Bearer ${anna.key}`, 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ query, ...more }),
      });
    const told = async (answer: Response) => {
      await answer.arrayBuffer();
      return [answer.headers.get('content-type'), answer.headers.get('content-disposition')];
    };
    const csv = ['text/csv; charset=utf-8; header=present', 'attachment; filename="query.csv"'];
    const json = ['application/json; charset=utf-8', null];
    expect(await told(await post(query, 'csv'))).toEqual(csv);
    expect(await told(await ask({ format: 'csv' }))).toEqual(csv);
    expect(await told(await ask({}, { accept: 'text/csv, */*;q=0.1' }))).toEqual(csv);
    expect(await told(await ask({}, { accept: 'application/json, text/csv' }))).toEqual(json);
    expect(await told(await ask({}, { accept: '*/*' }))).toEqual(json);
    expect(await told(await ask({ format: 'json' }, { accept: 'text/csv' }))).toEqual(json);
    expect(await told(await post(query, 'jsonl'))).toEqual([
      'application/x-ndjson',
      'attachment; filename="query.jsonl"',
    ]);
    expect(await told(await post(query, 'parquet'))).toEqual([
      'application/vnd.apache.parquet',
      'attachment; filename="query.parquet"',
    ]);
    expect(await told(await ask({}, { accept: 'application/vnd.apache.arrow.stream' }))).toEqual([
      'application/vnd.apache.arrow.stream',
      'attachment; filename="query.arrows"',
    ]);
  });
});

describe('a query that is wrong', () => {
  const bad: [string, object, object, string, RegExp][] = [
    ['names no column', select('select evnt from events'), {}, 'query', /perhaps you meant 'event'/],
    ['names two columns alike', select('select 1 as a, 2 as a'), {}, 'query', /called 'a'.*with AS/],
    ['lists persons', { kind: 'ActorsQuery' }, {}, 'query__kind', /as JSON only/],
    ['asks for a plan', select('select 1'), { explain: true }, 'explain', /Only an answer in JSON/],
    ['asks for later', select('select 1'), { async: true }, 'async', /cannot be asked for later/],
    ['asks for later by `refresh`', select('select 1'), { refresh: 'force_async' }, 'async', /for JSON/],
    [
      'fails at its fortieth row',
      select(`select ${OVERFLOW(40)} as high, ${LONG} from (select arrayJoin(range(0, 50)) as n)`),
      {},
      'query',
      /too large/,
    ],
    ['fails at its data', select(`select ${OVERFLOW(1)} from (select 1 as n)`), {}, 'query', /too large/],
  ];
  test.each(bad)('is told as JSON: one that %s', async (_, query, more, attr, detail) => {
    for (const format of ['csv', 'arrow']) {
      const answer = await post(query, format, more);
      const told = (await answer.json()) as { attr: string; detail: string };
      expect([answer.status, told.attr, answer.headers.get('content-disposition')]).toEqual([
        400,
        attr,
        null,
      ]);
      expect(told.detail).toMatch(detail);
    }
  });

  test('is not begun in the background', async () => {
    await post(select('select 1'), 'csv', { async: true, client_query_id: 'file' });
    const { rows } = await api.pool.query('select count(*)::int as count from background_queries');
    expect(rows[0].count).toBe(0);
  });

  test.each([
    [
      'SLUICE_QUERY_FILE_BYTES',
      "select repeat('x', 2000) as long",
      /^The result is larger than 1000 bytes\. /,
    ],
    [
      'SLUICE_QUERY_FILE_SECONDS',
      `select count() as count from (${many(300_000_000, 'n % 3 as x')}) where x > 5`,
      /^The query takes longer than 1 second\. The time in which the client takes the file counts\. /,
    ],
  ])('or exceeds %s', async (name, query, detail) => {
    const most = name === 'SLUICE_QUERY_FILE_BYTES' ? 1_000 : 1;
    const app = await api.rebuild({ config: { ...api.config, [name]: most } });
    const answer = await app.inject({
      ...{ method: 'POST', url: `/api/projects/${anna.projectId}/query/?format=csv` },
      headers: { authorization: `Bearer ${anna.key}` },
      payload: { query: select(query) },
    });
    await app.close();
    expect([answer.statusCode, answer.json().detail]).toEqual([400, expect.stringMatching(detail)]);
  });
});

describe('the walls between projects', () => {
  const SELECT = 'select event from events order by event';

  test('hold in files: a project reads its own events', async () => {
    expect((await ofAnna(SELECT, 'csv')).toString()).toBe('event\r\nbuy\r\nlook\r\n');
    const elsewhere = await askForFile(
      url,
      { ...anna, projectId: otto.projectId },
      select('select 1'),
      'csv',
    );
    expect(elsewhere.status).toBe(404);
  });
  test('hold without the policies of Postgres', async () => {
    const { rows } = await api.pool.query('select distinct project_id from events');
    expect(rows.length).toBe(2);
    const app = await api.rebuild({ resultPool: api.pool });
    const there = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
    const files = await Promise.all([anna, otto].map((one) => fileOf(there, one, SELECT, 'csv')));
    await app.close();
    expect(files.map(String)).toEqual(['event\r\nbuy\r\nlook\r\n', 'event\r\nsecret\r\n']);
  });
  test('hold without the condition of the statement', async () => {
    const select = 'select event from events order by event';
    const compiled = {
      ...{ text: `copy (${select}) to stdout (format binary)`, select },
      columns: [{ name: 'event', type: 'string', nullable: true }] as Column[],
      hogql: '',
    };
    const chunks: string[] = [];
    await encodeResult(api.reader, { projectId: otto.projectId }, compiled, {
      ...{ format: 'csv', timeoutMs: 0 },
      write: async (bytes) => void chunks.push(bytes.toString()),
    });
    expect(chunks.join('')).toBe('event\r\nsecret\r\n');
  });
});

const describeFound = found ? describe : describe.skip;
describeFound('readers in Python see', () => {
  const VALUES = `
    select event, properties.note as note, toFloat(properties.price) as price, properties.tags as tags,
      toTimeZone(timestamp, 'Europe/Berlin') as berlin, toDate(timestamp) as day, event = 'buy' as buys,
      splitByChar(',', concat(event, ',ü')) as parts, properties as all,
      toInt('9223372036854775807') as top, NULL as nothing, person_id as person
    from events order by timestamp`;
  const NOTE = 'a "b", c\nd';
  /** The greatest number of 64 bits. The script in Python writes it as a text. */
  const TOP = '9223372036854775807';

  test('the types and values of every row', async () => {
    const parquet = await ofAnna(VALUES, 'parquet');
    const seen = {
      parquet: read('parquet', parquet),
      duckdb: read('duckdb', parquet),
      arrow: read('arrow', await ofAnna(VALUES, 'arrow')),
      csv: read('csv', await ofAnna(VALUES, 'csv')),
      jsonl: read('jsonl', await ofAnna(VALUES, 'jsonl')),
    };
    const common = [
      ['event', 'string'],
      ['note', 'string'],
      ['price', 'double'],
      ['tags', 'string'],
    ];
    const arrow = (list: string) => [
      ...common,
      ...[
        ['berlin', 'timestamp[us, tz=UTC]'],
        ['day', 'string'],
        ['buys', 'bool'],
        ['parts', `list<${list}: string>`],
      ],
      ...[
        ['all', 'string'],
        ['top', 'int64'],
        ['nothing', 'string'],
        ['person', 'string'],
      ],
    ];
    const first = [
      ...['buy', NOTE, 10, '["x","y"]', '2026-03-10 12:00:00+00:00', '2026-03-10', true, ['buy', 'ü']],
      ...[JSON.stringify({ note: NOTE, price: 10, tags: ['x', 'y'] }), TOP, null, expect.any(String)],
    ];
    const second = [
      ...['look', null, null, null, '2026-03-10 12:00:01.500000+00:00', '2026-03-10', false, ['look', 'ü']],
      ...['{"$current_url":"https://example.com/"}', TOP, null, expect.any(String)],
    ];
    const rows = [first, second];
    expect(seen.parquet).toEqual({ types: arrow('element'), rows });
    expect(seen.arrow).toEqual({ types: arrow('item'), rows });
    expect(seen.duckdb.rows).toEqual(rows);
    expect(seen.duckdb.types.map(([, type]: string[]) => type)).toEqual([
      ...[
        'VARCHAR',
        'VARCHAR',
        'DOUBLE',
        'VARCHAR',
        'TIMESTAMP WITH TIME ZONE',
        'VARCHAR',
        'BOOLEAN',
        'VARCHAR[]',
      ],
      ...['VARCHAR', 'BIGINT', 'VARCHAR', 'VARCHAR'],
    ]);
    // Readers of texts find out types by themselves.
    const listed = (row: unknown[]) => row.with(7, JSON.stringify(row[7]));
    expect(seen.csv.rows).toEqual([listed(first), listed(second.with(1, '').with(3, ''))]);
    expect(seen.jsonl.rows[0].toSpliced(8, 1)).toEqual(
      first.with(4, '2026-03-10T12:00:00.000000Z').with(5, '2026-03-10 00:00:00').toSpliced(8, 1),
    );
    expect(seen.jsonl.rows[0][8]).toMatchObject({ note: NOTE, price: 10, tags: ['x', 'y'] });
  });

  test('a file without rows', async () => {
    const none = 'select event, timestamp as at from events where false';
    const types = [
      ['event', 'string'],
      ['at', 'timestamp[us, tz=UTC]'],
    ];
    const parquet = await ofAnna(none, 'parquet');
    expect(read('parquet', parquet)).toEqual({ types, rows: [] });
    expect(read('duckdb', parquet).rows).toEqual([]);
    expect(read('arrow', await ofAnna(none, 'arrow'))).toEqual({ types, rows: [] });
  });

  test('all rows of many row groups and batches', async () => {
    for (const [format, rows] of [
      ['parquet', 300_000],
      ['arrow', 100_000],
    ] as const) {
      const whole = { rows, sum: (rows * (rows - 1)) / 2, different: rows };
      const found = read(format, await ofAnna(many(rows, LONG), format), 'many');
      expect(found).toMatchObject(whole);
      if (format === 'parquet') expect(found.groups).toBeGreaterThan(2);
    }
  });
});
