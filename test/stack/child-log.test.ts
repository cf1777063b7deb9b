import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
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
  ['null', undefined],
  ['   ', undefined],
])('%s is shown as %s', (line, words) => {
  expect(inWords(line)).toBe(words);
});

test('the file has every line whole, however the output was cut; the terminal has warnings once', () => {
  const shown: string[] = [];
  const log = new ChildLog(path.join(folder, 'api.log'), 'API', (line) => shown.push(line));
  const warning = '{"level":"warn","msg":"Postgres is away"}\n';
  const output = `{"level":"info","msg":"one"}\n${warning}${warning}${warning}`;
  for (const piece of output.match(/.{1,7}/gs) ?? []) log.write(piece);
  log.write('the last words');
  log.close();
  expect(readFileSync(log.file, 'utf8')).toBe(`${output}the last words\n`);
  expect(statSync(log.file).mode & 0o777).toBe(0o600);
  expect(shown).toEqual(['[API] warn: Postgres is away', '[API] the last words']);
});
