import { describe, expect, test } from '@jest/globals';
import { SourceError } from '../../../hog/errors.ts';
import type { Parser } from '../../../hog/parser/index.ts';
import { importGraph, sourceFiles } from '../../architecture/import-graph.ts';
import { testParser } from './support.ts';

const parser = testParser();

async function fault(promise: Promise<unknown>): Promise<SourceError> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof SourceError)) throw new Error(`expected a SourceError, got ${String(error)}`);
  return error;
}

describe('errors have a place', () => {
  test.each<[keyof Parser, string, number, number, string]>([
    ['expression', 'a +', 1, 4, 'Unexpected end of the source'],
    ['expression', 'a b', 1, 3, "Unexpected 'b', expected the end of the source"],
    ['expression', '', 1, 1, 'Unexpected end of the source'],
    ['program', 'let x := 1;\n\nlet é := 2', 3, 5, 'Unexpected character U+00E9'],
    ['program', "let x := '😀😀' + )", 1, 17, "Cannot make sense of '+ )'"],
    ['template', 'Hi {1.5', 1, 8, "Missing '}' before end of the source"],
    ['template', 'Grüße €\n😀 {1 + }', 2, 8, "Unexpected '}'"],
    ['program', '// é\nlet a := 1; b(\n// é\n 1 +)', 4, 5, 'Cannot make sense of'],
    ['select', 'select a from', 1, 14, 'Unexpected end of the source'],
  ])('%s %j', async (kind, source, line, column, reason) => {
    const error = await fault((parser[kind] as (source: string) => Promise<unknown>)(source));
    expect(error.code).toBe('syntax');
    expect(error.reason).toContain(reason);
    expect([error.line, error.column]).toEqual([line, column]);
    expect(error.message).toBe(`${error.reason} (line ${line}, column ${column})`);
  });

  test('the caret stands under the place', async () => {
    const error = await fault(parser.program('let a := 1\n\treturn a + ;'));
    expect(error.excerpt).toBe(' return a + ;\n            ^'.replace('            ^', `${' '.repeat(12)}^`));
    const [text, caret] = (error.excerpt ?? '').split('\n') as [string, string];
    expect(text[caret.length - 1]).toBe(';');
  });

  test('a long line is cut around the place', async () => {
    const error = await fault(
      parser.expression(`${'a'.repeat(500)} + ${'b'.repeat(50)} @ ${'c'.repeat(500)}`),
    );
    const [text, caret] = (error.excerpt ?? '').split('\n') as [string, string];
    expect(text.length).toBeLessThan(120);
    expect(text[caret.length - 1]).toBe('@');
  });

  test('what the grammar knows and the parser does not is unsupported', async () => {
    expect((await fault(parser.expression("date '2020-01-01'"))).code).toBe('unsupported');
    expect((await fault(parser.select('<Tag/>'))).code).toBe('unsupported');
  });

  test('half a surrogate pair is refused before it is read', async () => {
    const error = await fault(parser.expression("'ab\ud800'"));
    expect([error.code, error.column]).toEqual(['syntax', 4]);
  });
});

describe('limits', () => {
  test('size is counted in UTF-8 bytes', async () => {
    const small = testParser({ maxBytes: 12 });
    await expect(small.expression("'0123456789'")).resolves.toMatchObject({ value: '0123456789' });
    expect((await fault(small.expression("'01234567890'"))).code).toBe('too_large');
    expect((await fault(small.expression("'éééééé'"))).code).toBe('too_large');
  });

  test.each([
    ['expression', '('.repeat(101) + ')'.repeat(101)],
    ['expression', '['.repeat(101)],
    ['template', '{'.repeat(101)],
    ['program', `${"f'{".repeat(101)}1`],
    ['select', `select ${'f('.repeat(101)}`],
    ['expression', `1 // '\r${'('.repeat(101)}`],
    ['expression', `1 # '\n${'('.repeat(101)}`],
  ] as const)('brackets of a %s nest at most 100 deep: %s', async (kind, source) => {
    expect((await fault(parser[kind](source))).code).toBe('too_deep');
  });

  test('brackets in strings, names and comments are no brackets', async () => {
    const many = '('.repeat(300);
    const source = `/* ${many} */ '${many} \\' '' ${many}' = "${many}" // ${many}\n -- ${many}\r# ${many}`;
    await expect(parser.expression(source)).resolves.toMatchObject({ kind: 'compare' });
  });

  test('a template nests only as deep as its holes', async () => {
    const source = `${"f'{".repeat(8)}1${"}'".repeat(8)} ${"|| f'x {1} }'".repeat(3)}`;
    await expect(parser.expression(source.replaceAll(' }', ' '))).resolves.toBeDefined();
  });

  test('a text that takes too long is given up and harms no other', async () => {
    const quick = testParser({ timeoutMs: 1_500 });
    const hostile = `${'not '.repeat(400)}1`;
    const [error, next] = await Promise.all([fault(quick.expression(hostile)), quick.expression('1 + 1')]);
    expect(error.code).toBe('timeout');
    expect(next).toMatchObject({ kind: 'arithmetic' });
  });

  test('a tree too deep for the parser is an error, and the parser goes on', async () => {
    expect((await fault(parser.expression(`1${' + 1'.repeat(5_000)}`))).code).toBe('too_deep');
    await expect(parser.expression('2 + 2')).resolves.toMatchObject({ kind: 'arithmetic' });
  });

  test('more than the queue holds is refused', async () => {
    const narrow = testParser({ maxWaiting: 2 });
    const answers = await Promise.allSettled([1, 2, 3, 4, 5].map((n) => narrow.expression(`${n}`)));
    expect(answers.map((one) => one.status)).toEqual([
      'fulfilled',
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
    ]);
  });

  test('closing ends what waits', async () => {
    const closing = testParser();
    const pending = fault(closing.expression('1'));
    await closing.close();
    expect((await pending).code).toBe('busy');
    expect((await fault(closing.expression('2'))).code).toBe('busy');
  });
});

describe('the cache', () => {
  test('gives the same tree for the same text and kind', async () => {
    const first = await parser.expression('cached + 1');
    expect(await parser.expression('cached + 1')).toBe(first);
    expect(await parser.template('cached + 1')).toMatchObject({ kind: 'constant' });
  });

  test('two callers at once share one parse', async () => {
    const [one, two] = await Promise.all([parser.expression('shared + 1'), parser.expression('shared + 1')]);
    expect(one).toBe(two);
  });

  test('remembers errors of the text', async () => {
    expect(await fault(parser.expression('a + '))).toBe(await fault(parser.expression('a + ')));
  });

  test('forgets the oldest by number and by size', async () => {
    const small = testParser({ cacheEntries: 2 });
    const first = await small.expression('1');
    await small.expression('2');
    expect(await small.expression('1')).toBe(first);
    await small.expression('3');
    expect(await small.expression('1')).toBe(first);
    await small.expression('4');
    await small.expression('5');
    expect(await small.expression('1')).not.toBe(first);
    const tight = testParser({ cacheCharacters: 30 });
    const long = await tight.expression('111111111111');
    await tight.expression('222222222222');
    expect(await tight.expression('111111111111')).not.toBe(long);
  });
});

test('nothing but one file knows the parser, and nothing but one file the package of the machine', () => {
  const root = new URL('../../../', import.meta.url).pathname;
  const graph = importGraph(root);
  const users = (name: string) =>
    graph
      .filter((edge) => edge.target === name)
      .map((edge) => edge.file)
      .filter((file) => !file.startsWith('test/') && !file.startsWith('bench/'));
  expect(sourceFiles(root).length).toBeGreaterThan(10);
  expect(users('@posthog/hogql-parser').filter((file) => file !== 'hog/parser/engine.ts')).toEqual([]);
  expect(users('@posthog/hogvm').filter((file) => file !== 'hog/runtime/hogvm.ts')).toEqual([]);
});
