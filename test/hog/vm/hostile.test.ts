import { describe, expect, test } from '@jest/globals';
import { type Bytecode, compileBytecode } from '../../../hog/bytecode/index.ts';
import { compileJavaScript } from '../../../hog/javascript/index.ts';
import { DEFAULT_LIMITS, run } from '../../../hog/vm/index.ts';
import { evaluate } from '../support/evaluate.ts';
import { failure, parser, result, runSource } from './support.ts';

const clock = () => performance.now();
const limits = { maxSteps: 2_000_000, maxMemory: 16 * 1024 * 1024, maxMilliseconds: 3_000 };

describe('programs that never mean well end, and the next run is as ever', () => {
  const double = "let s := 'xxxxxxxxxxxxxxxx'; for (let i := 0; i < 60; i := i + 1) { s := concat(s, s) }";
  const big = "let s := 'aaaaaaaaaaaaaaaa'; for (let i := 0; i < 17; i := i + 1) { s := concat(s, s) }";
  test.each([
    ['endless loop', 'while (true) {}', /steps|time/],
    [
      'endless loop with work',
      "let a := []; while (true) { a := arrayPushBack(a, 'x') }",
      /steps|time|memory/,
    ],
    ['endless recursion', 'fun f() { return f() } f()', /depth/],
    ['mutual recursion by closures', 'let f := x -> x(x); f(f)', /depth/],
    ['recursion in the library', 'let f := x -> arrayMap(f, [1]); f(1)', /depth/],
    ['doubling strings', double, /memory|steps|time/],
    ['doubling lists', 'let a := [1]; while (true) { a := [a, a] }', /depth|memory|steps|time/],
    [
      'a list in itself',
      'let a := [1]; a[1] := a; while (true) { a := [a, a, a] }',
      /depth|memory|steps|time/,
    ],
    ['deep nesting', 'let a := []; while (true) { a := [a] }', /depth/],
    [
      'deep nesting in place',
      'let a := {}; let b := a; while (true) { let c := {}; b.x := c; b := c }',
      /depth|memory|steps|time/,
    ],
    ['a list with a far end', 'let a := []; a[1000000000] := 1', /runtime/],
    [
      'many far ends',
      'let a := []; let i := 1; while (true) { a[i * 900000] := 1; i := i + 1 }',
      /memory|steps/,
    ],
    ['a range', 'return length(range(1, 1000000000))', /memory|steps|time/],
    ['a range to infinity', 'return range(inf)', /memory|runtime/],
    ['replacing by much', `${big} return length(replaceAll(s, 'a', s))`, /memory|steps|time/],
    [
      'replacing by what stands around',
      `${big} return replaceOne(s, 'a', '$\`$\`$\`$\`$\`$\`$\`')`,
      /memory/,
    ],
    ['replacing by itself', `${big} return replaceAll(s, 'a', '$&$&$&$&$&$&$&$&')`, /memory|steps|time/],
    ['joining by much', `${big} return arrayStringConcat(range(0, 100), s)`, /memory|steps|time/],
    [
      'splitting into all',
      `${big} let t := concat(s, s); return length(splitByString('', t))`,
      /memory|steps|time/,
    ],
    ['searching slowly', `${big} return position(concat(s, 'b'), concat('b', s))`, /runtime|steps/],
    ['searching slowly with in', `${big} return concat('b', s) in concat(s, 'b')`, /runtime|steps/],
    [
      'a slow regular expression',
      `${big} return s =~ '(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*b'`,
      /runtime/,
    ],
    ['a huge regular expression', `${big} return 'x' =~ s`, /runtime/],
    ['a growing regular expression', "return 'x' =~ '((((a{1000}){1000}){1000}){1000})'", /runtime/],
    [
      'printing for ever',
      "while (true) { print('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx') }",
      /steps|time/,
    ],
    [
      'deep JSON',
      "let s := '['; for (let i := 0; i < 18; i := i + 1) { s := concat(s, s) } return jsonParse(s)",
      /runtime|depth/,
    ],
    [
      'indented JSON',
      'let a := [1]; for (let i := 0; i < 400; i := i + 1) { a := [a, 1, 2, 3] } return length(jsonStringify([range(0, 200000), a], 10))',
      /memory/,
    ],
    [
      'closures that keep strings',
      `${big} let all := []; while (true) { let t := concat(s, toString(length(all))); all := arrayPushBack(all, () -> t) }`,
      /memory|steps/,
    ],
    ['sorting for ever', 'let a := range(0, 100000); while (true) { arraySort(a) }', /steps|time|memory/],
    [
      'zones without end',
      "let i := 0; while (true) { i := i + 1; toString(toTimeZone(toDateTime(0), f'Made/Up{i}')) }",
      /steps|time/,
    ],
    ['too many arguments', `return concat(${Array(301).fill("'a'").join(', ')})`, /runtime/],
  ])('%s', async (_name, source, code) => {
    const outcome = await runSource(source, { limits, clock });
    expect(failure(outcome)[0]).toMatch(code);
    expect(result(await runSource('return [1, 2]'))).toEqual([1, 2]);
  });

  test('zones that exist are known whatever was made up before', async () => {
    const source = "return toString(toTimeZone(toDateTime('2024-01-01T00:00:00Z'), 'US/Pacific'))";
    expect(result(await runSource(source))).toBe('2023-12-31T16:00:00.000-08:00');
  });

  test('a 100 MB string among the globals', async () => {
    const globals = { s: 'x'.repeat(100_000_000) };
    expect(failure(await runSource('return s', { globals, limits, clock }))[0]).toBe('memory');
    expect(result(await runSource('return 1', { globals, limits, clock }))).toBe(1);
  });

  test('deep globals', async () => {
    let deep: unknown = 1;
    for (let i = 0; i < 100_000; i++) deep = [deep];
    expect(failure(await runSource('return deep', { globals: { deep } }))[0]).toBe('depth');
  });

  test('the messages name the limit', async () => {
    expect(failure(await runSource('while (true) {}', { limits: { maxSteps: 100 } }))[1]).toBe(
      'Exceeded the maximum of 100 steps.',
    );
    expect(failure(await runSource('fun f() { f() } f()'))[1]).toBe(
      'Call stack exceeded maximum length of 1000',
    );
    const timed = await runSource('while (true) {}', { clock, limits: { maxMilliseconds: 5 } });
    expect(failure(timed)[1]).toMatch(/^Execution timed out after 0.005 seconds. Performed \d+ ops.$/);
    const small = await runSource("return concat('aaaaaaaaaa', 'bbbbbbbbbb')", { limits: { maxMemory: 30 } });
    expect(failure(small)[1]).toMatch(/^Memory limit of 30 bytes exceeded. Tried to allocate \d+ bytes.$/);
    expect(DEFAULT_LIMITS.maxMemory).toBe(64 * 1024 * 1024);
  });
});

describe('lists that are small to hold and huge to write out', () => {
  // Built from the top down, so that no list is large when it is put into the next.
  const build =
    'let top := []; let a := top; for (let i := 0; i < 60; i := i + 1) { let b := []; a[1] := b; a[2] := b; a := b }';
  test.each([
    'return top + 1',
    'return 1 > top',
    "return top < [[1], 'a']",
    "return top like 'a'",
    "return 'a' ilike top",
    "return top =~ 'a'",
    "return top in 'text'",
    'return {}[top] = null and top[top] = 1',
    'print(top)',
    'return toString(top)',
    'return jsonStringify(top)',
    'return concat(top)',
    "return arrayStringConcat(top, ',')",
    'return arraySort([top, top])',
    "return splitByString(top, 'abc')",
    "return position('abc', top)",
    'return toInt(top)',
    'return top',
    'return {top: 1}',
    'throw Error(top)',
    "throw Error('x', {'top': top})",
    'return host(top)',
    'return length(values(top)) + jsonStringify(values(top))',
  ])('%s', async (end) => {
    const source = `${build} ${end}`;
    const options = { functions: { host: () => 1 }, limits: { maxSteps: 5_000_000, maxMemory: 1_000_000 } };
    const program = await parser.program(source);
    expect(failure(run(compileBytecode(program), options))[0]).toBe('memory');
    const javaScript = compileJavaScript(program).run({}, options);
    expect(javaScript.status === 'failed' && javaScript.error.code).toBe('memory');
  });
});

describe('hand-made code', () => {
  test.each<[string, unknown]>([
    ['nothing', []],
    ['no list', 'code'],
    ['no header', [1, 2]],
    ['unknown version', ['_H', 2, 29]],
    ['unknown instruction', ['_H', 1, 99]],
    ['instruction that is text', ['_H', 1, 'x']],
    ['null as instruction', ['_H', 1, null]],
    ['missing operand', ['_H', 1, 32]],
    ['text that is none', ['_H', 1, 32, 5]],
    ['number that is none', ['_H', 1, 33, { valueOf: 1 }]],
    ['negative count', ['_H', 1, 3, -1]],
    ['fractional count', ['_H', 1, 43, 1.5]],
    ['huge count', ['_H', 1, 43, 1e9]],
    ['jump out', ['_H', 1, 39, 1000]],
    ['jump before the start', ['_H', 1, 39, -100]],
    ['jump into an operand', ['_H', 1, 32, 'a', 39, -3]],
    ['jump to a fraction', ['_H', 1, 39, 0.5]],
    ['jump out of a function', ['_H', 1, 52, 'f', 0, 0, 2, 39, 3, 53, 0, 29]],
    ['function longer than the code', ['_H', 1, 52, 'f', 0, 0, 50, 38]],
    ['catch nowhere', ['_H', 1, 50, 100, 51]],
    ['closure of nothing', ['_H', 1, 29, 53, 0]],
    ['closure with missing variables', ['_H', 1, 52, 'f', 0, 2, 2, 31, 38, 53, 2, true, 0]],
    ['closure with other variables', ['_H', 1, 52, 'f', 0, 1, 2, 31, 38, 53, 0]],
    ['stack underflow by pop', ['_H', 1, 35]],
    ['stack underflow by plus', ['_H', 1, 33, 1, 6]],
    ['stack underflow by list', ['_H', 1, 33, 1, 43, 2]],
    ['stack underflow by call', ['_H', 1, 2, 'concat', 5]],
    ['popping what is the caller’s', ['_H', 1, 33, 1, 52, 'f', 0, 0, 3, 35, 31, 38, 53, 0, 54, 0]],
    ['variable that is not there', ['_H', 1, 36, 5]],
    ['setting what is not there', ['_H', 1, 29, 37, 5]],
    ['captured variable that is not there', ['_H', 1, 55, 0]],
    ['end of no try', ['_H', 1, 51]],
    ['cohort', ['_H', 1, 29, 29, 27]],
  ])('%s is refused', (_name, code) => {
    expect(failure(run(code as Bytecode))[0]).toBe('bytecode');
  });

  test.each<[string, Bytecode]>([
    ['calling a number', ['_H', 1, 33, 1, 54, 0]],
    ['throwing a number', ['_H', 1, 33, 1, 49]],
    ['calling what is not there', ['_H', 1, 2, 'constructor', 0]],
    ['a global that is not there', ['_H', 1, 32, '__proto__', 1, 1]],
  ])('%s is an error of the program', (_name, code) => {
    expect(failure(run(code))[0]).toBe('runtime');
  });

  test('a function that never ends its code ends the run', () => {
    const endless: Bytecode = ['_H', 1, 39, -2];
    expect(failure(run(endless, { limits: { maxSteps: 10_000 } }))[0]).toBe('steps');
  });

  test('evaluate throws what run tells', () => {
    expect(evaluate(['_H', 1, 33, 1])).toBe(1);
    expect(() => evaluate(['_H', 1, 35])).toThrow('stack is empty');
    expect(() => evaluate(['_H', 1, 2, 'wait', 0], { asyncFunctions: ['wait'] })).toThrow('wait');
  });
});
