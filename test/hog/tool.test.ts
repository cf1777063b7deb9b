import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { HogSession } from '../../scripts/hog-session.ts';
import { testParser } from './parser/support.ts';

const root = path.resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(path.join(tmpdir(), 'hog-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  writeFileSync(path.join(folder, name), text);
  return path.join(folder, name);
}

const hog = (...args: string[]) => hogWith('', ...args);

const hogWith = (input: string, ...args: string[]) =>
  spawnSync(process.execPath, ['scripts/hog.ts', ...args], { cwd: root, encoding: 'utf8', input });

describe('npm run hog', () => {
  test('runs a file with globals and says what it printed and returned', () => {
    const program = file('run.hog', "print('hello', event)\nsleep(0.01)\nreturn [1.5, {'a': null}]");
    const globals = file('globals.json', '{"event": "$pageview"}');
    const { stdout, status } = hog(program, '--globals', globals);
    expect([status, stdout]).toEqual([
      0,
      `hello $pageview\n${JSON.stringify([1.5, { a: null }], null, 2)}\n`,
    ]);
  });

  test('shows bytecode, JavaScript and tree', () => {
    const program = file('show.hog', 'return 1.0 + 2');
    expect(JSON.parse(hog(program, '--bytecode').stdout)).toEqual(['_H', 1, 33, 2, 34, 1, 6, 38]);
    expect(hog(program, '--js').stdout).toContain('return R.add(2, 1);');
    expect(JSON.parse(hog(program, '--ast').stdout)).toMatchObject({ kind: 'program' });
  });

  test('shows the place of an error and fails', () => {
    const { stderr, status } = hog(file('bad.hog', 'let a := 1\nreturn a +'));
    expect(status).toBe(1);
    expect(stderr).toContain('line 2');
    expect(stderr).toMatch(/return a \+\n\s+\^/);
    expect(hog(file('fails.hog', 'return nothing')).stderr).toContain('Global variable not found: nothing');
  });

  test('takes a program from the standard input', () => {
    expect(hogWith('print(1)\nreturn 2', '-').stdout).toBe('1\n2\n');
  });

  test('is a prompt without a file, for statements of several lines too', () => {
    const { stdout } = hogWith('let a := 20\na + 1\nfun f(x) {\n  return x * 2\n}\nf(40)\nf(\n\n1 +');
    expect(stdout).toContain('21\n');
    expect(stdout).toContain('80\n');
    expect(stdout).toMatch(/Unexpected end of the source \(line 2, column 1\)\n\n\^\n/);
    expect(stdout).toMatch(/Unexpected end of the source \(line 1, column 4\)\n1 \+\n {3}\^\n$/);
  });

  test.each<[string[], number, RegExp]>([
    [['/nope.hog'], 1, /^Cannot read \/nope.hog: there is no such file\n$/],
    [[folder], 1, /^Cannot read .*: it is a directory\n$/],
    [['--nope'], 2, /^Unknown option '--nope'\n\nnpm run hog/],
    [['--bytecode'], 2, /^--bytecode needs a file\n/],
    [['a.hog', '--js', '--ast'], 2, /^--js and --ast exclude each other\n/],
    [['--globals', 'README.md'], 1, /^README.md is not JSON: [^\n]*\n$/],
  ])('%j is told in a sentence', (args, code, message) => {
    const { stderr, stdout, status } = hog(...args);
    expect(stderr).toMatch(message);
    expect(stdout).toBe('');
    expect(status).toBe(code);
  });
});

describe('the prompt remembers', () => {
  const parser = testParser();

  test('variables, changes to them, and functions', async () => {
    const session = new HogSession(parser, {});
    const values: unknown[] = [];
    for (const line of [
      'let x := 5',
      'x + 1',
      'fun times(a) { return a * x }',
      'times(2)',
      'x := 7; times(2)',
      'let add := y -> y + x',
      'add(1)',
      'let list := [1, 2]',
      'list[1] := 9',
      'list',
      "let x := 'new'",
      'x',
    ]) {
      const answer = await session.line(line);
      expect(answer.error).toBeNull();
      if (answer.hasValue) values.push(answer.value);
    }
    expect(values).toEqual([6, 10, 14, 8, [9, 2], 'new']);
  });

  test('what was there before a line failed', async () => {
    const session = new HogSession(parser, { asyncFunctions: ['wait'] });
    await session.line('let x := 1');
    expect(await session.line('x +')).toMatchObject({ incomplete: true, error: { line: 1 } });
    expect(await session.line('x + )')).toMatchObject({ incomplete: false, error: { line: 1 } });
    expect(await session.line('y := 1')).toMatchObject({ error: { line: 1, column: 1 } });
    expect((await session.line('nothing')).error?.message).toContain('Global variable not found');
    expect((await session.line('wait(1)')).error?.message).toContain('wait() is an async function');
    expect((await session.line("print('p'); x")).printed).toEqual(['p']);
    expect((await session.line('x')).value).toBe(1);
  });
});
