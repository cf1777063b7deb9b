import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { build, type Expr } from '../../../hog/ast/index.ts';
import { type Bytecode, compileBytecode, OP_NAMES, OPERAND_COUNTS } from '../../../hog/bytecode/index.ts';
import type { SourceError } from '../../../hog/errors.ts';
import { compileJavaScript } from '../../../hog/javascript/index.ts';
import { written } from '../../../hog/library/bytecode.ts';
import { compileLibrary } from '../../../hog/library/compile.ts';
import { SORTING } from '../../../hog/runtime/lists.ts';
import { run } from '../../../hog/vm/index.ts';
import { prepare } from '../../../hog/vm/validate.ts';
import { testParser } from '../parser/support.ts';

const parser = testParser();
const root = path.resolve(import.meta.dirname, '../../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');
const golden = JSON.parse(read('test/hog/bytecode/golden.json')) as [string, string, Bytecode][];

describe('programs', () => {
  test.each(golden)('%s', async (_name, source, expected) => {
    const code = compileBytecode(await parser.program(source), source);
    expect(code).toEqual(expected);
    expect(prepare(code)).toHaveLength(code.length);
  });

  test('use every instruction a compiler can write', () => {
    const used = new Set<number>();
    const walk = (code: Bytecode, from: number, to: number) => {
      for (let at = from; at < to; ) {
        const op = code[at] as number;
        used.add(op);
        at += 1 + (OPERAND_COUNTS.get(op) ?? 0);
        if (OP_NAMES.get(op) === 'CLOSURE') at += 2 * (code[at - 1] as number);
      }
    };
    for (const [, , code] of golden) walk(code, 2, code.length);
    const unused = [...OP_NAMES].filter(([code]) => !used.has(code)).map(([, name]) => name);
    // Cohorts are refused, functions are closures now.
    expect(unused).toEqual(['IN_COHORT', 'NOT_IN_COHORT', 'DECLARE_FN']);
  });
});

describe('expressions and templates leave their value', () => {
  test.each<[string, Bytecode]>([
    ['{event}', ['_H', 1, 32, 'event', 1, 1]],
    ['plain', ['_H', 1, 32, 'plain']],
    ['', ['_H', 1, 32, '']],
    [
      'https://x.io/{event.uuid}',
      ['_H', 1, 32, 'https://x.io/', 32, 'uuid', 32, 'event', 1, 2, 2, 'concat', 2],
    ],
    ['{person.properties.email}', ['_H', 1, 32, 'email', 32, 'properties', 32, 'person', 1, 3]],
  ])('template %s', async (source, code) => {
    expect(compileBytecode(await parser.template(source))).toEqual(code);
  });

  test('trees made without text', () => {
    expect(compileBytecode(build.and([]))).toEqual(['_H', 1, 29]);
    const mail = build.call('toString', build.field('person', 'properties', 'email'));
    expect(compileBytecode(build.compare('not ilike', mail, build.constant('%@x.com%')))).toEqual([
      '_H',
      1,
      32,
      '%@x.com%',
      32,
      'email',
      32,
      'properties',
      32,
      'person',
      1,
      3,
      2,
      'toString',
      1,
      20,
    ]);
  });
});

describe('what means nothing is refused, with its place', () => {
  test.each([
    ['let a := 1; let a := 2', 'Variable `a` already declared in this scope', 13],
    ['fun f(a, a) {}', 'Variable `a` already declared in this scope', 1],
    ['event := 1', 'Variable "event" not declared in this scope. Can not assign to globals.', 1],
    ['event.a := 1', 'Variable "event" not declared in this scope. Can not assign to globals.', 1],
    ["'a' := 1", 'Can not assign to this type of expression', 1],
    ['let a := a + 1', 'Variable `a` is used before it has a value', 10],
    ['return a[0]', 'Array access starts from 1', 10],
    ['return {a}', 'Placeholders are not allowed in this context', 8],
    ['try { a } catch { b } finally { c }', 'finally blocks are not yet supported', 31],
    ['try { a }', 'try statement must have at least one catch block', 1],
    ['for (;;) {}', '`for` needs a condition', 1],
    ['for (print(1); a;) {}', '`for` takes declarations and assignments only', 6],
    ['for (let i := 0; i < 1; print(i)) {}', '`for` takes declarations and assignments only', 25],
    ['for (let i := 0; i < 1; let j := 1) {}', '`for` cannot declare a variable in its third part', 25],
    ['if (a) fun f() {}', 'A declaration is only allowed inside a block', 8],
    ['while (a) fun f() {}', 'A declaration is only allowed inside a block', 11],
    [
      'return a in cohort 5',
      "Can't use cohorts in real-time filters. Please inline the relevant expressions (cohort id=5).",
      8,
    ],
    [
      "return a not in cohort 'x'",
      "Can't use cohorts in real-time filters. Please inline the relevant expressions (cohort: x).",
      8,
    ],
    [
      'return a in cohort b',
      "Can't use cohorts in real-time filters. Please inline the relevant expressions.",
      8,
    ],
  ])('%s', async (source, reason, column) => {
    const program = await parser.program(source);
    const error = thrown(() => compileBytecode(program, source));
    expect([error.code, error.reason, error.column]).toEqual(['compile', reason, column]);
    expect(error.excerpt).toContain('^');
  });

  test.each([
    'a as b',
    'cast(a as int)',
    'try_cast(a as int)',
    'a[1:2]',
    'a is distinct from b',
    'f(a := 1)',
    '#1',
    '(select 1)',
    '(select 1 union all select 2)',
    'sql(a)',
    'f() over ()',
    'columns(a)',
    '*columns(a)',
    'count(distinct a)',
    'f(x) filter (where y)',
  ])('HogQL only: %s', async (source) => {
    const node = await parser.expression(source);
    expect(thrown(() => compileBytecode(node, source)).code).toBe('unsupported');
  });
});

test('trees of any depth are compiled or refused', async () => {
  const chain = (depth: number) => {
    let node: Expr = build.integer(1);
    for (let i = 0; i < depth; i++) node = build.arithmetic('+', node, build.integer(1));
    return node;
  };
  expect(compileJavaScript(chain(1_000)).run({})).toMatchObject({ result: 1_001 });
  expect(run(compileBytecode(chain(1_000)))).toMatchObject({ result: 1_001 });
  expect(thrown(() => compileBytecode(chain(200_000))).code).toBe('too_deep');
  expect(thrown(() => compileJavaScript(chain(200_000))).code).toBe('too_deep');
  const source = Array(250).fill('1').join(' + ');
  expect(compileJavaScript(await parser.expression(source)).run({})).toMatchObject({ result: 250 });
});

function thrown(act: () => unknown): SourceError {
  try {
    act();
  } catch (error) {
    return error as SourceError;
  }
  throw new Error('nothing was thrown');
}

describe('the library written in Hog', () => {
  test('is what its source compiles to', async () => {
    const source = read('hog/library/library.hog');
    expect(compileLibrary(await parser.program(source), source)).toEqual(written);
  });

  test('has, function by function, the code of the reference', () => {
    const reference = read('node_modules/@posthog/hogvm/src/stl/bytecode.ts');
    const entries = [...reference.matchAll(/^\s+"(\w+)": \[(\[.*?\]), (\[.*\])\],$/gm)];
    // Sorting by a function is ours.
    const names = written.map((one) => one.name).filter((name) => !SORTING.has(name));
    expect(entries.map((one) => one[1]).sort()).toEqual(names.sort());
    for (const [, name, params, code] of entries) {
      const ours = written.find((one) => one.name === name);
      expect([name, ours?.params, ours?.code]).toEqual([
        name,
        JSON.parse(params as string),
        JSON.parse(code as string),
      ]);
    }
  });
});
