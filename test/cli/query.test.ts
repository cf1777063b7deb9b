import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { capturedEvent } from '../capture/support.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { sluice } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { inherited } from '../support/programs.ts';

const api = apiForFile();
const folder = mkdtempSync(path.join(tmpdir(), 'sluice-query-'));
let anna: Tenant;
let url: string;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  url = await api.app.listen({ host: '127.0.0.1', port: 0 });
  await api.ingest.submit({
    projectId: anna.projectId,
    events: [
      capturedEvent({ event: 'buy', distinct_id: 'ada', properties: { note: 'a "b", c\nd', price: 10 } }),
      capturedEvent({ index: 1, event: 'look', distinct_id: 'bob', properties: { price: 2.5 } }),
    ],
  });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const access = () => ({
  SLUICE_URL: url,
  SLUICE_API_KEY: anna.key,
  SLUICE_PROJECT_ID: String(anna.projectId),
});
const query = (args: string[], env: Record<string, string> = {}) =>
  sluice(['query', ...args], { ...access(), ...env });
const SOURCE =
  'select event, toFloat(properties.price) as price, properties.note from events order by price desc';

test('rows are a table for people, CSV for spreadsheets and JSON lines for programs', async () => {
  expect(await query([SOURCE])).toEqual({
    code: 0,
    stderr: '',
    stdout: [
      'event  price  properties.note',
      '-----  -----  ---------------',
      'buy       10  a "b", c d',
      'look     2.5',
      '',
    ].join('\n'),
  });
  expect((await query([SOURCE, '--format', 'csv'])).stdout).toBe(
    'event,price,properties.note\r\nbuy,10,"a ""b"", c\nd"\r\nlook,2.5,\r\n',
  );
  const { stdout } = await query([SOURCE, '--format', 'json']);
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([
    { event: 'buy', price: 10, 'properties.note': 'a "b", c\nd' },
    { event: 'look', price: 2.5, 'properties.note': null },
  ]);
});

test('a query comes from a file, too, and more rows than are shown are told', async () => {
  const file = path.join(folder, 'numbers.sql');
  writeFileSync(file, '-- Many.\nselect arrayJoin(range(0, 60)) as n from events order by n');
  const { code, stdout, stderr } = await query(['--file', file]);
  expect([code, stdout.trim().split('\n').length]).toEqual([0, 102]);
  expect(stderr).toBe('There are more than 100 rows. Add a LIMIT.\n');
});

test('all rows go to a file, whose name tells the format', async () => {
  const csv = path.join(folder, 'events.csv');
  const rowsOfCsv = 'event,price,properties.note\r\nbuy,10,"a ""b"", c\nd"\r\nlook,2.5,\r\n';
  const told = await query([SOURCE, '--output', csv]);
  expect(told).toEqual({
    ...{ code: 0, stdout: '', stderr: `Wrote ${rowsOfCsv.length} bytes to ${csv}.\n` },
  });
  expect(readFileSync(csv, 'utf8')).toBe(rowsOfCsv);
  const lines = path.join(folder, 'numbers');
  const numbers = 'select arrayJoin(range(0, 300)) as n from events order by n';
  expect((await query([numbers, '--format', 'jsonl', '--output', lines])).code).toBe(0);
  const rows = readFileSync(lines, 'utf8').trimEnd().split('\n');
  expect([rows.length, rows[0], rows.at(-1)]).toEqual([600, '{"n":0}', '{"n":299}']);
  const parquet = path.join(folder, 'numbers.parquet');
  expect((await query([numbers, '--output', parquet])).code).toBe(0);
  expect(readFileSync(parquet).subarray(-4).toString()).toBe('PAR1');
  const arrow = path.join(folder, 'numbers.arrows');
  expect((await query([numbers, '--output', arrow])).code).toBe(0);
  // A stream of Arrow begins with the mark of a message, and ends with one of no length.
  const end = Buffer.from([255, 255, 255, 255, 0, 0, 0, 0]);
  expect([readFileSync(arrow).subarray(0, 4), readFileSync(arrow).subarray(-8)]).toEqual([
    end.subarray(0, 4),
    end,
  ]);
});

test('a file that breaks off leaves what was there before', async () => {
  const file = path.join(folder, 'old.csv');
  writeFileSync(file, 'old');
  const breaking = createServer((_request, response) => {
    response.write('n\r\n1\r\n', () => response.destroy());
  });
  breaking.listen(0, '127.0.0.1');
  await once(breaking, 'listening');
  const { port } = breaking.address() as AddressInfo;
  const broken = await query(['select 1', '--output', file], { SLUICE_URL: `http://127.0.0.1:${port}` });
  breaking.close();
  expect([broken.code, broken.stdout]).toEqual([1, '']);
  expect(broken.stderr).toContain(`The result broke off, and ${file} was not written`);
  const wrong = await query(['select evnt from events', '--output', file]);
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining("perhaps you meant 'event'")]);
  expect(readFileSync(file, 'utf8')).toBe('old');
  expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([]);
});

test.each([
  [['select evnt from events'], 1, /perhaps you meant 'event'.*\nselect evnt from events\n {7}\^\n$/],
  [['select 1', '--format', 'xml'], 2, /--format: "xml" is none of table, csv, json/],
  [['select 1', '--file', 'x'], 2, /not both/],
  [['select 1', '--format', 'parquet'], 2, /--format: "parquet" needs --output/],
  [
    ['select 1', '--format', 'table', '--output', 'x.csv'],
    2,
    /"table" is none of csv, jsonl, parquet, arrow/,
  ],
  [['select 1', '--escape-formulas'], 2, /--escape-formulas is for --format csv/],
  [['select 1', '--async', '--output', 'rows.csv'], 2, /without --async/],
  [['select 1', '--id', 'x'], 2, /begun before/],
  [['--id', 'nobody'], 1, /404/],
  [
    ['select evnt from events', '--async'],
    1,
    /perhaps you meant 'event'.*\nselect evnt from events\n {7}\^\n$/,
  ],
  [['select 1', '--output', 'rows.txt'], 2, /say with --format whether "rows.txt" is csv/],
])('%j says what is wrong', async (args, code, message) => {
  const result = await query(args);
  expect([result.code, result.stdout]).toEqual([code, '']);
  expect(result.stderr).toMatch(message);
});

/** Letters that move a cursor, change colors or turn the direction of writing. */
const ODD = '\u001b[31m\u009b2J\u202e\u0007';
const ODD_VALUE = `unhex('${Buffer.from(ODD).toString('hex')}')`;

test('JSON has no letters that a terminal takes for commands, and says the same', async () => {
  const { stdout } = await query([`select ${ODD_VALUE} as odd, [${ODD_VALUE}] as list`, '--format', 'json']);
  expect(stdout.trim()).toMatch(/^[\x20-\x7e]*$/);
  expect(JSON.parse(stdout)).toEqual({ odd: ODD, list: [ODD] });
});

test('a CSV does nothing to a terminal, and says all to a program', async () => {
  const args = [`select ${ODD_VALUE} as odd, [${ODD_VALUE}] as list`, '--format', 'csv'];
  expect((await query(args)).stdout).toContain(ODD);
  const inTerminal = 'import pty, sys; pty.spawn(sys.argv[1:])';
  const child = spawn('python3', ['-c', inTerminal, process.execPath, 'cli/main.ts', 'query', ...args], {
    env: { ...inherited(), ...access() },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  await once(child, 'close');
  expect(shown).toContain('odd,list');
  for (const letter of '\u001b\u009b\u202e\u0007') expect(shown).not.toContain(letter);
});

test('a CSV for spreadsheets has no formulas, shown or in a file', async () => {
  const source = "select '=1+1' as \"@name\", '-5' as number, -5 as real";
  const sheet = "'@name,number,real\r\n'=1+1,-5,-5\r\n";
  const args = ['--format', 'csv', '--escape-formulas'];
  expect((await query([source, ...args])).stdout).toBe(sheet);
  const file = path.join(folder, 'sheet');
  await query([source, ...args, '--output', file]);
  expect(readFileSync(file, 'utf8')).toBe(sheet);
  expect((await query([source, '--format', 'csv'])).stdout).toBe('@name,number,real\r\n=1+1,-5,-5\r\n');
});

test('a query in the background goes on when its command is interrupted, and is found by its id', async () => {
  const holder = await api.pool.connect();
  await holder.query('begin; lock table persons in access exclusive mode');
  const child = spawn(
    process.execPath,
    ['cli/main.ts', 'query', 'select count() as n from persons', '--async', '--format', 'csv'],
    {
      env: { ...inherited(), ...access() },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let told = '';
  child.stderr.on('data', (chunk) => {
    told += chunk;
  });
  const ended = once(child, 'exit');
  const id = await eventually(async () => /--id (\S+)\n/.exec(told)?.[1]);
  child.kill('SIGINT');
  expect(await ended).toEqual([null, 'SIGINT']);
  await holder.query('rollback');
  holder.release();
  expect(await query(['--id', id, '--format', 'csv'])).toEqual({ code: 0, stdout: 'n\r\n2\r\n', stderr: '' });
});

test('no error tells the key', async () => {
  const { code, stderr } = await query(['select 1'], { SLUICE_API_KEY: 'phx_nobody' });
  expect([code, stderr.includes('401'), stderr.includes('phx_nobody')]).toEqual([1, true, false]);
});
