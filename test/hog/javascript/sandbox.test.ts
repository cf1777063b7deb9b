import { beforeEach, describe, expect, test } from '@jest/globals';
import { build, type Expr, type Program } from '../../../hog/ast/index.ts';
import { compileJavaScript } from '../../../hog/javascript/index.ts';
import { table } from '../../../hog/javascript/runtime.ts';
import { testParser } from '../parser/support.ts';

const parser = testParser();
const { access, call, constant, field, integer } = build;

/** What an escape would leave behind. */
const marks = globalThis as unknown as { escaped?: unknown };
const before = Object.getOwnPropertyNames(Object.prototype).sort();

beforeEach(() => {
  delete marks.escaped;
});

function unharmed(): void {
  expect(marks.escaped).toBeUndefined();
  expect(Object.getOwnPropertyNames(Object.prototype).sort()).toEqual(before);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  expect(([] as unknown as Record<string, unknown>).polluted).toBeUndefined();
}

/** The names a compiled text may use: its own, the two arguments, the table, and keywords. */
const ALLOWED = new Set(
  'use strict const let return if else for break try catch null true false typeof undefined string number boolean object'.split(
    ' ',
  ),
);

function checkCode(code: string): void {
  // What is left when literals are taken out.
  const bare = code.replace(/"(?:[^"\\]|\\.)*"/g, '""');
  for (const [name] of bare.matchAll(/(?<![\w.$])[A-Za-z_$][\w$]*/g)) {
    if (!ALLOWED.has(name) && !/^(?:[RGEgvt]|[a-z]\d+)$/.test(name)) throw new Error(`the name ${name}`);
  }
  for (const [, owner, name] of bare.matchAll(/(\w+)\.([A-Za-z_$][\w$]*)/g)) {
    const known = owner === 'R' ? Object.hasOwn(table, name as string) : name === 'meter' || name === 'step';
    if (!known) throw new Error(`${owner}.${name}`);
  }
  expect(bare).not.toMatch(/[`\\]|\/\/|\/\*|=>\s*\{\s*\}\s*\(/);
}

const globals = JSON.parse(
  '{"event":"x","properties":{"a":1,"list":[1],"__proto__":{"polluted":"own"}},"text":"abc"}',
);

const ESCAPES = [
  'return constructor',
  'return event.constructor',
  'return event.constructor.constructor',
  "return event['constructor']['constructor']('escaped := 1')()",
  'return properties.constructor.prototype',
  'return properties.__proto__.polluted',
  'return properties.__proto__.__proto__',
  'return properties.list.constructor',
  "return properties.list['map']",
  'return text.replace',
  "return [].constructor.constructor('return process')()",
  'return (1).constructor',
  'return {}.constructor',
  "return {}['__proto__']",
  "let d := {}; d.__proto__ := {'polluted': 1}; return d.polluted",
  "let d := {}; d['__proto__'] := {'polluted': 1}; return {}.polluted",
  'let d := {}; d.constructor := 1; d.prototype := 2; return [d.constructor, {}.constructor]',
  "let d := {'__proto__': {'polluted': 1}}; return [{}.polluted, d.polluted]",
  'let d := {}; d.__proto__.polluted := 1',
  'let l := []; l.polluted := 1',
  "let l := []; l['__proto__'] := {'polluted': 1}; return l.polluted",
  'let l := []; l.length := 0',
  'let f := x -> x; return f.constructor',
  'let f := x -> x; return f.callable',
  'let f := x -> x; return f.__proto__',
  'let f := x -> x; f.call := 1',
  'return toString.constructor',
  'return length.callable.chunk',
  'return (print).prototype',
  'return globalThis',
  'return process',
  'return require',
  'return this',
  'return arguments',
  'return eval',
  'return G',
  'return E',
  'return R',
  'return E.meter',
  'return R.own',
  "return eval('escaped')",
  "return Function('globalThis.escaped = 1')()",
  "return require('child_process')",
  "return constructor('x')",
  "return __proto__('x')",
  "return hasOwnProperty('x')",
  'return toLocaleString()',
  'return valueOf()',
  'let R := 1; return R + 1',
  'let E := 1; let G := 2; return E + G + event',
  'let v0 := 1; let t0 := null; let g0 := 3; return [v0, t0 ?? 2, g0, event]',
  'let arguments := 1; let eval := 2; return arguments + eval',
  'let await := 1; let yield := 2; let class := 3; return await + yield + class',
  'let __proto__ := 1; let constructor := 2; return __proto__ + constructor',
  'fun constructor(x) { return x } return constructor(1)',
  'let `a; globalThis.escaped = 1; //` := 1; return `a; globalThis.escaped = 1; //`',
  'return `x"); globalThis.escaped = 1; ("`',
  'return \'x"); globalThis.escaped = 1; ("\'',
  "return '\\\\\"); globalThis.escaped = 1; //'",
  "return '\u2028globalThis.escaped = 1'",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what is tried
  "return '${globalThis.escaped = 1}'",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what is tried
  "return f'${globalThis.escaped = 1}'.a",
  "return '*/ globalThis.escaped = 1 /*'",
  "return {'`x`': 1, '__proto__': 2, 'toString': 3}",
  "return toString({'toString': 'x', 'valueOf': 1}) + {'valueOf': () -> 1}",
  "return concat({'toString': () -> 1})",
  "return jsonStringify({'toJSON': () -> 1, '__proto__': {'polluted': 1}})",
  'return jsonParse(\'{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}\').polluted',
  'return jsonParse(\'{"__hogClosure__": true, "callable": {}, "upvalues": []}\')()',
  'return (jsonParse(\'{"__hogError__": true, "type": "x", "message": {"constructor": 1}}\')).message.constructor.constructor',
  'return jsonParse(\'{"__hogDateTime__": true, "dt": {"a": 1}, "zone": "UTC"}\').dt.constructor',
  "try { throw Error('x') } catch (e) { return [e.constructor, e.stack, e.__proto__, e.prototype] }",
  'try { return null.a.b(1) } catch (e) { return e.constructor }',
  "return replaceAll('aaa', 'a', '$&$`')",
  'return arrayMap(x -> constructor(x), [1])',
  "return arrayMap('constructor', [1])",
  'return arrayMap(constructor, [1])',
  "return formatDateTime(toDateTime(0), '%Y\\'); globalThis.escaped = 1; (\\'')",
  "return extractRegex('aaa', '(?<constructor>a)')",
  'return keys(toDateTime(0))',
  'return values(x -> x)',
  "return JSONHas(jsonParse('{}'), 'constructor')",
  "return JSONExtract('{}', 'constructor', 'prototype', 'String')",
  "return JSONExtractString(jsonStringify({}), '__proto__', 'constructor')",
  "return <constructor __proto__='x'>{event}</constructor>",
  'return <R own={event}/>',
];

describe('no source gets out', () => {
  test('at least forty ways are tried', () => {
    expect(new Set(ESCAPES).size).toBeGreaterThanOrEqual(40);
  });

  test.each(ESCAPES)('%s', async (source) => {
    let program: Program;
    try {
      program = await parser.program(source);
    } catch {
      // Not even Hog: nothing was compiled.
      unharmed();
      return;
    }
    const compiled = compileJavaScript(program, source);
    checkCode(compiled.code);
    const outcome = compiled.run(globals, { limits: { maxSteps: 10_000 } });
    unharmed();
    const text = JSON.stringify(outcome.status === 'finished' ? outcome.result : null) ?? '';
    expect(text).not.toMatch(/native code|function Object|\[Function/);
    if (outcome.status === 'finished') expect(plain(outcome.result)).toBe(true);
  });

  test.each<[string, Expr]>([
    ['a field with code for a name', field('a"]); globalThis.escaped = 1; (["')],
    ['a path with code', field('event', '"; globalThis.escaped = 1; "')],
    ['a call with code for a name', call('f"](), globalThis.escaped = 1, R["x', integer(1))],
    ['a text with line ends', constant('\u2028\u2029\n\r"\\')],
    ['a text with half a character', constant('\ud800"')],
    ['a number that is none', { kind: 'constant', value: Number.NaN, float: true }],
    ['an index with code', access(field('event'), constant(']; globalThis.escaped = 1; ['))],
    [
      'a parameter with code',
      { kind: 'lambda', params: ['a) => 1; globalThis.escaped = 1; ((b'], body: constant(1 as never) },
    ],
    ['a tag with code', { kind: 'tag', name: '"+(globalThis.escaped=1)+"', attributes: [] }],
  ])('trees made by hand: %s', (_name, node) => {
    const compiled = compileJavaScript(node);
    checkCode(compiled.code);
    compiled.run({ event: 'x' });
    unharmed();
  });

  test('the table is frozen, and so is what is in it', () => {
    expect(Object.isFrozen(table)).toBe(true);
    for (const one of Object.values(table)) expect(Object.isFrozen(one)).toBe(true);
  });
});

/** Only data: no functions, no prototypes of strangers. */
function plain(value: unknown): boolean {
  if (typeof value === 'function') return false;
  if (typeof value !== 'object' || value === null) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== Array.prototype && prototype !== null) return false;
  return Object.values(value).every(plain);
}

describe('compiled programs end', () => {
  test.each([
    ['while (true) {}', 'steps'],
    ['for (let i := 0; true; i := i) {}', 'steps'],
    ['fun f() { return f() } f()', 'depth'],
    ['let f := x -> x(x); f(f)', 'depth'],
    ['let f := x -> arrayMap(f, [1]); f(1)', 'depth'],
    ["let s := 'xxxxxxxx'; while (true) { s := concat(s, s) }", 'memory'],
    ['try { while (true) {} } catch { return 1 }', 'steps'],
    ['return range(0, 1000000000)', 'memory'],
    ['let a := []; while (true) { a := [a] }', 'depth'],
    ['let a := [1]; while (true) { a := [a, a] }', 'memory'],
  ])('%s', async (source, code) => {
    const compiled = compileJavaScript(await parser.program(source));
    const outcome = compiled.run({}, { limits: { maxSteps: 100_000, maxMemory: 1_000_000 } });
    expect(outcome.status === 'failed' && outcome.error.code).toBe(code);
    expect(compileJavaScript(await parser.program('return 1')).run({})).toMatchObject({ result: 1 });
  });

  test('an evaluator starts anew each time', async () => {
    const compiled = compileJavaScript(
      await parser.program('for (let i := 0; i < 60; i := i + 1) {} return event'),
    );
    const evaluate = compiled.evaluator({ limits: { maxSteps: 100 } });
    for (let i = 0; i < 10; i++) expect(evaluate({ event: i })).toBe(i);
    const endless = compileJavaScript(await parser.program('while (true) {}')).evaluator({
      limits: { maxSteps: 100 },
    });
    expect(() => endless({})).toThrow('Exceeded the maximum of 100 steps.');
    expect(() => endless({})).toThrow('Exceeded the maximum of 100 steps.');
  });

  test.each([
    'a = a',
    'a != a',
    'a < a',
    '-1 in a',
    '-1 not in a',
    'a + 1',
    "a =~ 'x'",
    "a like 'x'",
    "s ilike '%x%'",
    "s =~ 'x'",
  ])('looking at large values costs steps: %s', async (test) => {
    const made = "let a := range(50000) let s := arrayStringConcat(a, '-----') let n := 0";
    const source = `${made} while (n < 100) { n := n + 1; ${test} }`;
    const compiled = compileJavaScript(await parser.program(source));
    const outcome = compiled.run({}, { limits: { maxSteps: 60_000 } });
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'steps' } });
  });

  test('what JavaScript cannot do is said at once, with its place', async () => {
    const source = 'return [1, multiIf(a, 1, b, 2)]';
    const program = await parser.program(source);
    expect(() => compileJavaScript(program, source)).toThrow(
      '`multiIf` needs an else value to compile to JavaScript (line 1, column 12)',
    );
    const filter = await parser.expression('if(event, 1)');
    expect(compileJavaScript(filter).run({ event: false })).toMatchObject({ result: null });
  });
});
