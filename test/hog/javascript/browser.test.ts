import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import type { Expr, Program } from '../../../hog/ast/index.ts';
import { compileBytecode } from '../../../hog/bytecode/index.ts';
import { data } from '../../../hog/javascript/browser/data.js';
import { json } from '../../../hog/javascript/browser/json.js';
import { moments } from '../../../hog/javascript/browser/moments.js';
import { texts } from '../../../hog/javascript/browser/texts.js';
import { transpile, transpileAll } from '../../../hog/javascript/index.ts';
import { writtenFunctions } from '../../../hog/javascript/written.ts';
import { library } from '../../../hog/runtime/stl.ts';
import { run } from '../../../hog/vm/index.ts';
import { browse } from '../../capture/chromium.ts';
import { findChromium } from '../../capture/client-programs.ts';
import { testParser } from '../parser/support.ts';
import { exact } from '../support/compare.ts';
import { randomExpr, randomGlobals } from '../support/generate-expression.ts';
import { randomProgram } from '../support/generate-program.ts';
import { Random } from '../support/random.ts';

const parser = testParser();

/** The functions of the language that a browser has. */
const browserFunctions = { ...texts, ...json, ...data, ...moments };

const SIGNING = /^(?:sha|md5)/;

const GLOBALS = {
  event: '$pageview',
  timestamp: '2024-03-31T01:30:00+01:00',
  properties: { $browser: 'Firefox', price: '12.50', list: [3, 1, 2], nested: { a: [1, { b: null }] } },
  person: { properties: { email: 'ada@example.com', name: 'Ada' } },
  when: { __hogDateTime__: true, dt: 1711848599.25, zone: 'Europe/Berlin' },
  long: { __hogDateTime__: true, dt: -62135596800, zone: 'America/New_York' },
};

/** Each is an expression; all of the language's functions are among them. */
const EXPRESSIONS = `
event = '$pageview' and properties.$browser in ('Firefox', 'Safari') and not (person.properties.email ilike '%@posthog.com')
properties.price > 12 ? 'dear' : 'cheap'
properties.missing ?? properties.nested.a[2].b ?? 'nothing'
[1, 10] > [1, 9] and '10' > 9 and 1 = true and 5 between 1 and 9 and 'b' not in ['a']
when > toDateTime('2024-01-01') and timestamp < when
'abc' =~ '^a(?:b|c)+$' and 'ABC' =~* 'b' and 'a' !~ 'b' and 'x%y' like 'x%' and match('Line', '(?i)line')
concat('a', 1, null, toDate('2024-02-29'), [1, (2, 3)], {'k': 'it''s'})
[toString(1.5), toString(when), toUUID('x'), toString(toDate('2024-02-29')), toString(null)]
[lower('ÄB'), upper('äß'), reverse('abc'), length('abc'), length([1]), empty(''), notEmpty([1]), empty({})]
[trim('  a '), trim('xxaxx', 'x'), trimLeft('  a '), trimRight('  a '), trim('a', 'bc')]
[replaceOne('aa', 'a', 'b'), replaceAll('a.a', '.', '$&$&'), splitByString(',', 'a,b,c', 2), substring('hello', 2, 3)]
[position('abc', 'c'), positionCaseInsensitive('ABC', 'c'), startsWith('abc', 'ab'), multiSearchAnyCaseInsensitive('Hello', ['ELL'])]
[like('abc', 'b'), ilike('ABC', 'a%'), notLike('a', 'b'), notILike('a', 'A'), extractRegex('order 12', '([0-9]+)')]
[encodeURLComponent('ä & b'), decodeURLComponent('%C3%A4'), tryDecodeURLComponent('%')]
[base64Encode('äöü 😀'), base64Decode('w6TDtsO8'), tryBase64Decode('YQ')]
[length(generateUUIDv4()), randomFloat() < 1]
[jsonParse('{"a": [1, {"b": null}]}'), jsonStringify({'a': [1, (2,)], 'f': x -> x}), jsonStringify([1], 2), isValidJSON('{')]
[JSONHas('{"a": [1]}', 'a', 1), JSONLength('[1, 2]'), JSONExtract('{"a": {"b": 1}}', 'a', 'Map'), JSONExtractBool('{"a": true}', 'a')]
[JSONExtractInt('{"a": "7x"}', 'a'), JSONExtractFloat('[1.5]', 1), JSONExtractString('{"a": 1}', 'a'), JSONExtractArrayRaw('{"a": [1]}', 'a')]
[toInt('12px'), toFloat('x'), toInt(when), toFloat(toDate('2024-01-01')), round(2.5), floor(2.5), min2(2, 1), 7 % 3, 1 / 0]
[plus(1, 2), minus(1, 2), equals(1, 1), notEquals(1, '1'), greater(2, 1), greaterOrEquals(1, 1), less(1, 2), lessOrEquals(2, 1)]
[and(1, 0), or(0, 1), not(1), if(1, 2, 3), multiIf(0, 1, 1, 2, 3), in(1, [1]), isNull(null), isNotNull(1), ifNull(null, 1), coalesce(null, 2), assumeNotNull(1)]
arrayMap(x -> typeof(x), [null, true, 1, 1.5, '', [], (1, 2), {}, when, toDate('2024-01-01'), Error('m'), x -> x])
[range(3), range(1, 3), tuple(1), keys({'a': 1}), values({'a': 1}), keys([1]), indexOf([1, 2], 2), has([1], 1)]
[arrayPushBack([1], 2), arrayPushFront([1], 2), arrayPopBack([1, 2]), arrayPopFront([1, 2]), arraySort([3, 1, 20]), arrayReverse([1, 2]), arrayReverseSort([1, 3, 2]), arrayStringConcat([1, 2], '-')]
[arrayFilter(x -> x > 1, properties.list), arrayExists(x -> x = 1, [1]), arrayCount(x -> x, [0, 1]), arrayReduce((a, b) -> a + b, [1, 2], 10)]
[splitByString('', '😀'), substring('a😀b', 1, 2), substring('a😀b', 3), reverse('a😀'), jsonStringify(splitByString('', '\\\\😀')), {substring('😀', 1, 1): 1}]
[round(2.345, 2), round(-1.5), round(1234.5, -2), arraySort(x -> -x, [1, 3, null, 2]), arrayReverseSort(x -> x.n, [{'n': 1}, {'n': 2}]), arraySort(toString, [3, 20])]
(() -> { print(splitByString('', '😀')); let a := []; let b := a; for (let i := 0; i < 3; i := i + 1) { a := arrayPushBack(a, i); b := arrayPushFront(b, a) } return [a, b] })()
[inCohort(1, [1, 2]), notInCohort(1, [1, 2]), sortableSemver('v1.10.0-beta'), sortableSemver(null), isIPAddressInRange('10.1.2.3', '10.0.0.0/8'), isIPAddressInRange('2001:db8::1', '2001:db8::/33')]
[typeof(now()), typeof(today()), toDateTime(timestamp), toDateTime('2024-03-31 02:30', 'Europe/Berlin'), toDateTime('2024-10-27 02:30:00.5', 'Europe/Berlin'), toDate('2024-02-30')]
[toUnixTimestamp('2024-01-01'), toUnixTimestampMilli(toDate('2024-01-01')), fromUnixTimestamp(1), fromUnixTimestampMilli(1500), toTimeZone(when, 'Asia/Kathmandu')]
arrayMap(f -> formatDateTime(when, f), ['%Y-%m-%d %H:%i:%S', '%a %b %c %C %D %e %f %F', '%g %G %h %I %j %k %l %M %n %p %Q', '%r %R %s %t %T %u %V %w %W %y %z %%', 'at %q %Y it''s'])
[formatDateTime(when, '%H:%i %z', 'America/St_Johns'), formatDateTime(long, '%Y %j %V'), formatDateTime(when, '%H', 'Nowhere')]
arrayMap(u -> [dateAdd(u, 1, when), dateAdd(u, -1, toDate('2024-03-31'))], ['day', 'week', 'month', 'year'])
arrayMap(u -> dateAdd(u, 90, when), ['hour', 'minute', 'second'])
arrayMap(u -> dateDiff(u, toDateTime('2023-11-30T10:00:00Z'), when), ['second', 'minute', 'hour', 'day', 'week', 'month', 'year'])
arrayMap(u -> dateDiff(u, when, toDate('2022-02-28')), ['hour', 'day', 'month'])
arrayMap(u -> dateTrunc(u, when), ['year', 'month', 'day', 'hour', 'minute'])
arrayMap(p -> extract(p, when), ['year', 'month', 'day', 'hour', 'minute', 'second'])
[toYear(when), toMonth(toDate('2024-05-01')), toYYYYMM(when), addDays(toDate('2024-02-28'), 2), toStartOfDay(when), toStartOfHour(when), toStartOfWeek(when), toStartOfMonth(toDate('2024-02-29'))]
[toIntervalDay(1), toIntervalHour(1), toIntervalMinute(1), toIntervalMonth(1)]
[Error('a', {'b': 1}), RetryError(), NotImplementedError('x'), HogError('T', 'm')]
(() -> { let total := 0; for (let k, v in [1, 2]) { total := total + k * v } print('sum', total, [1]); return total })()
(f -> f('http://x'))(base64Encode)
(() -> { try { throw HogError('Odd', 'm', {'n': 1}) } catch (e: Odd) { return [e.type, e.payload.n] } })()
unknown.name
[1][1 - 1]
upper(1, 2)
'a' in {}
`.trim();

const lines = EXPRESSIONS.split('\n');

/** What a page has of this: no `require`, no `process`. */
function page(): vm.Context {
  return vm.createContext({ TextEncoder, TextDecoder, atob, btoa, crypto: globalThis.crypto, console });
}

const LIMITS = { maxSteps: 200_000, maxMemory: 8_000_000 };

function inMachine(node: Program | Expr, globals: object): string | null {
  const outcome = run(compileBytecode(node), {
    globals,
    limits: LIMITS,
    clock: Date.now,
    random: Math.random,
  });
  if (outcome.status === 'finished') return `${outcome.printed.join('\n')} ${exact(outcome.result)}`;
  if (outcome.status === 'paused') return null;
  const { code, message } = outcome.error;
  return code === 'runtime' || code === 'uncaught' ? `error ${message}` : null;
}

type Transpiled = (globals: object, options?: object) => unknown;

function inPage(call: Transpiled, globals: object): string {
  const printed: string[] = [];
  try {
    const result = call(globals, { onPrint: (line: string) => printed.push(line) });
    return `${printed.join('\n')} ${exact(result)}`;
  } catch (error) {
    return `error ${(error as Error).message}`;
  }
}

test('the files that run in browsers import each other only', () => {
  const folder = path.join(import.meta.dirname, '../../../hog/javascript/browser');
  const files = readdirSync(folder).filter((name) => name.endsWith('.js'));
  const imported = files.flatMap((name) =>
    [...readFileSync(path.join(folder, name), 'utf8').matchAll(/ from '(.*)';/g)].map(([, from]) => from),
  );
  expect(imported.length).toBeGreaterThan(files.length);
  expect(imported.filter((from) => !files.some((name) => from === `./${name}`))).toEqual([]);
});

describe('transpiled code', () => {
  test('is one expression that runs by itself, with the functions it uses and no other', async () => {
    const node = await parser.template("{upper(event)} {trim(concat(text, '!'))}");
    const { lang, code, stl } = transpile(node);
    expect([lang, stl]).toEqual(['ts', ['concat', 'trim', 'upper']]);
    expect(code).toContain('"trim"');
    expect(code).not.toMatch(/"lower"|formatDate|\bimport\b|\brequire\b/);
    const call = vm.runInContext(`(${code})`, page()) as Transpiled;
    expect(call({ event: 'a', text: ' b ' })).toBe('A b !');
  });

  test('several share what they need', async () => {
    const nodes = await Promise.all(["upper('a')", "upper('b')"].map((one) => parser.expression(one)));
    const { code, stl } = transpileAll(nodes);
    expect(stl).toEqual(['upper']);
    expect(code.split('"upper": [').length).toBe(2);
    const calls = vm.runInContext(code, page()) as Transpiled[];
    expect(calls.map((call) => call({}))).toEqual(['A', 'B']);
  });

  test('can stand in a page: no text in it ends the script', async () => {
    const source = "return ['</script><!--', event.`</script>`, {'</script>': '\u2028'}]";
    const { code } = transpile(await parser.program(source));
    expect(code).not.toMatch(/<\/script|<!--|\u2028/);
    const call = vm.runInContext(`(${code})`, page()) as Transpiled;
    expect(exact(call({ event: { '</script>': 1 } }))).toBe(
      exact(['</script><!--', 1, { '</script>': '\u2028' }]),
    );
  });

  test('calls what the page gives it, ends, and throws what the program throws', async () => {
    const made = async (source: string) =>
      vm.runInContext(`(${transpile(await parser.program(source)).code})`, page()) as Transpiled;
    const seen: unknown[] = [];
    const functions = { posthogCapture: (...args: unknown[]) => seen.push(args) };
    expect((await made("posthogCapture('x', {'a': [1]}) return 1"))({}, { functions })).toBe(1);
    expect(exact(seen)).toBe('[["x",{"a":[1]}]]');
    const endless = await made('while (true) {}');
    expect(() => endless({}, { maxSteps: 1_000 })).toThrow('Exceeded the maximum of 1000 steps.');
    const throwing = await made("throw HogError('Odd', 'too odd', {'n': 1})");
    expect(() => throwing({})).toThrow(expect.objectContaining({ name: 'Odd', message: 'too odd' }));
    expect(() => (vm.runInContext('(f) => f({})', page()) as (f: unknown) => unknown)(throwing)).toThrow();
  });

  test('signing is for servers', async () => {
    const source = "return sha256Hex('secret')";
    const program = await parser.program(source);
    expect(() => transpile(program, source)).toThrow('sha256Hex() is not available in browsers');
    const all = [...library.keys(), ...writtenFunctions.keys()].filter((name) => !SIGNING.test(name));
    expect(all.filter((name) => !Object.hasOwn(browserFunctions, name))).toEqual([]);
  });
});

describe('the machine and the browser agree', () => {
  test('on every function', async () => {
    const nodes = await Promise.all(lines.map((line) => parser.expression(line)));
    const { code, stl } = transpileAll(nodes);
    const missing = Object.keys(browserFunctions).filter(
      (name) => name !== 'arrayMap' && !stl.includes(name),
    );
    // These become operators.
    expect(missing.filter((name) => !/^(?:and|or|not|if|multiIf|ifNull)$/.test(name))).toEqual([]);
    const calls = vm.runInContext(code, page()) as Transpiled[];
    const machine = nodes.map((node, at) => `${lines[at]}: ${inMachine(node, GLOBALS)}`);
    expect(calls.map((call, at) => `${lines[at]}: ${inPage(call, GLOBALS)}`)).toEqual(machine);
  });

  test('on random expressions and programs', () => {
    const context = page();
    let compared = 0;
    const differences: string[] = [];
    for (let seed = 1; compared < 600; seed++) {
      const random = new Random(seed);
      const globals = randomGlobals(random);
      const node = seed % 5 === 0 ? randomProgram(random) : randomExpr(random, 1 + random.below(4));
      const machine = inMachine(node, globals);
      let code: string;
      try {
        ({ code } = transpile(node));
      } catch {
        continue;
      }
      if (machine === null) continue;
      compared++;
      const browser = inPage(vm.runInContext(`(${code})`, context) as Transpiled, globals);
      // What is wrong is told in the words of the engine.
      if (machine.startsWith('error') && browser.startsWith('error')) continue;
      if (machine !== browser) differences.push(`${seed}: ${machine} but ${browser}`.slice(0, 300));
    }
    expect(differences).toEqual([]);
  });

  const { found: browser } = findChromium();
  (browser ? test : test.skip)('in a real one', async () => {
    const nodes = await Promise.all(lines.map((line) => parser.expression(line)));
    const script = `const calls = ${transpileAll(nodes).code};
const globals = ${JSON.stringify(GLOBALS)};
const answers = calls.map((call) => {
  const printed = [];
  try {
    const result = call(globals, { onPrint: (line) => printed.push(line) });
    return printed.join("\\n") + " " + JSON.stringify(result, (key, item) => typeof item === "number" && !Number.isFinite(item) ? "number " + item : item);
  } catch (error) {
    return "error " + error.message;
  }
});
fetch("/done", { method: "POST", body: JSON.stringify(answers) });`;
    const files = { '/': '<!doctype html><script src="/code.js"></script>', '/code.js': script };
    const answers = JSON.parse(await browse(browser as string, { files, path: '/' })) as string[];
    expect(answers).toEqual(nodes.map((node) => inMachine(node, GLOBALS)));
  });
});
