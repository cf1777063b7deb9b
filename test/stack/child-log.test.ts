import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { ChildLog, inWords } from '../../stack/child-log.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'sluice-test-log-'));
afterAll(() => rmSync(folder, { recursive: true }));

test.each<[string, string | undefined]>([
  ['{"level":"info","msg":"request completed"}', undefined],
  ['{"level":"warn","msg":"slow"}', 'warn: slow'],
  [
    '{"level":"error","msg":"request failed","err":{"message":"no route to host"}}',
    'error: request failed: no route to host',
  ],
  ['{"level":"error","err":{"message":"first line\\nsecond line"}}', 'error: first line'],
  ['{"level":"fatal"}', 'fatal: (no message)'],
  ['Error: at the top of a crash', 'Error: at the top of a crash'],
  ['key phx_0123456789abcdef was sent', 'key phx_[redacted] was sent'],
  ['postgres://user:secret@host/db', 'postgres://user:[redacted]@host/db'],
  [
    '{"level":"warn","msg":"an attempt failed","exportId":"01","message":"no bucket of phx_0123456789abcdef\\nmore"}',
    'warn: an attempt failed: no bucket of phx_[redacted] (batch export 01)',
  ],
  ['null', undefined],
  ['   ', undefined],
])('%s is shown as %s', (line, words) => {
  const said = inWords(line);
  expect(said && said.sentence + said.details).toBe(words);
});

test('of what differs only in the batch export that it is about, one is shown', () => {
  const shown: string[] = [];
  const log = new ChildLog(path.join(folder, 'many.log'), 'worker', (line) => shown.push(line));
  for (const id of ['01', '02', '03']) {
    writeSync(log.handle, `{"level":"warn","msg":"failed","exportId":"${id}","message":"why ${id}"}\n`);
  }
  log.close();
  expect(shown).toEqual(['[worker] warn: failed: why 01 (batch export 01)']);
});

test('shows warnings once, however the output is cut, and the last words without a line end', () => {
  const shown: string[] = [];
  const log = new ChildLog(path.join(folder, 'api.log'), 'API', (line) => shown.push(line));
  const warning = '{"level":"warn","msg":"Postgres is away – for now"}\n';
  const output = Buffer.from(`{"level":"info","msg":"one"}\n${warning}${warning}${warning}the last words`);
  for (let at = 0; at < output.length; at += 7) {
    writeSync(log.handle, output.subarray(at, at + 7));
    log.look();
  }
  log.close();
  expect(shown).toEqual(['[API] warn: Postgres is away – for now', '[API] the last words']);
  expect(statSync(path.join(folder, 'api.log')).mode & 0o777).toBe(0o600);
});

test('a log that has grown large is set aside, and what is written next is still read', () => {
  const shown: string[] = [];
  const file = path.join(folder, 'worker.log');
  const log = new ChildLog(file, 'worker', (line) => shown.push(line));
  const line = `{"level":"info","msg":"${'x'.repeat(1000)}"}\n`;
  writeSync(log.handle, line.repeat(21_000));
  log.look();
  writeSync(log.handle, '{"level":"error","msg":"after it"}\n');
  log.close();
  expect(readFileSync(file, 'utf8')).toBe('{"level":"error","msg":"after it"}\n');
  expect(statSync(`${file}.1`).size).toBe(line.length * 21_000);
  expect(shown).toEqual(['[worker] error: after it']);
});

test('only what is written from now on is shown', () => {
  const shown: string[] = [];
  const file = path.join(folder, 'old.log');
  writeFileSync(file, '{"level":"error","msg":"of yesterday"}\n');
  const log = new ChildLog(file, 'API', (line) => shown.push(line));
  log.close();
  expect(shown).toEqual([]);
});
