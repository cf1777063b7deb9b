import { expect, test } from '@jest/globals';
import { compileBytecode, compileWithPlaces, placeIn } from '../../hog/bytecode/index.ts';
import { placeOf, placesOf } from '../../hog/errors.ts';
import { compileJavaScript } from '../../hog/javascript/index.ts';
import { resume, run } from '../../hog/vm/index.ts';
import { testParser } from './parser/support.ts';

const parser = testParser();
const limits = { maxSteps: 20_000 };

/** Runs a text. Answers where the machine and compiled JavaScript say that it failed, and why. */
async function failures(source: string) {
  const program = await parser.program(source);
  const { code, places } = compileWithPlaces(program, source);
  expect(code).toEqual(compileBytecode(program, source));
  const machine = run(code, { limits });
  const javaScript = compileJavaScript(program, source, { keepsPlace: true }).run({}, { limits });
  if (machine.status !== 'failed' || javaScript.status !== 'failed')
    throw new Error(`${source} did not fail`);
  expect(javaScript.error.message).toBe(machine.error.message);
  const found = machine.at === null ? null : placeIn(places, machine.at);
  const text = (place: { line: number; column: number } | null) => place && `${place.line}:${place.column}`;
  return { machine: text(found), javaScript: text(javaScript.place), message: machine.error.message };
}

test.each([
  ['a throw', "let a := 1\n\n  throw Error('no')", '3:3'],
  ['an unknown name', 'let a := 1\nlet b := a + there.isNone', '2:14'],
  ['a call', "print('x')\nprint('😀', extractRegex('a', '('))", '2:12'],
  ['a call with calls in its arguments', "let a := {\n  'x': jsonParse(concat('a', lower('B')))\n}", '2:8'],
  ['an index', 'let a := [1]\nlet i := 0\nreturn concat(a[i], a[1])', '3:15'],
  ['an assignment', 'let a := [1]\nfor (let i := 0; i < 3; i := i + 1) {\n  a[i] := 1\n}', '3:3'],
  ['a function of the program', 'fun f(a) {\n  return [1][a]\n}\nlet b := f(1)\nlet c := f(0)', '2:10'],
  ['inside of a function of the language', 'let a := 1\nreturn arrayMap(a, [1])', '2:8'],
  ['what comes after a function', 'fun f(a) {\n  return a\n}\nlet c := [f(1)][f(0)]', '4:10'],
  ['a lambda', 'let f := x -> [x][x]\nprint(f(1))\nreturn arrayMap(f, [1, 0])', '1:15'],
  ['a call of what is no function', 'let a := 1\nlet b := [2]\na(b)', '3:1'],
  ['endless calls', 'fun f(a) {\n  return f(a)\n}\nf(1)', '2:10'],
  ['a value that is too deep', 'let a := []\nwhile (true) {\n  a := [1, a]\n}', '3:8'],
  ['`in`', 'let a := 1\nreturn true and 1 in a', '2:17'],
  ['a loop', "let a := {'x': 1}\nfor (let k, v in a) {\n  print(k, [v][v - 1])\n}", '3:12'],
])('%s', async (_name, source, place) => {
  const found = await failures(source);
  expect(found).toEqual({ machine: place, javaScript: place, message: found.message });
});

test('an endless loop is named', async () => {
  const found = await failures('let a := 1\nprint(a)\nwhile (true) {\n  a := a + 1\n}');
  expect(found.machine).toMatch(/^[34]:/);
  expect(found.javaScript).toBe('3:1');
});

test('the place survives a pause', async () => {
  const source = 'let a := wait(1)\nprint(a)\nlet b := [1][a]';
  const { code, places } = compileWithPlaces(await parser.program(source), source);
  const options = { asyncFunctions: ['wait'] };
  const paused = run(code, options);
  if (paused.status !== 'paused') throw new Error(paused.status);
  const failed = resume(JSON.parse(JSON.stringify(paused.state)), 0, options);
  expect(failed.status === 'failed' && placeIn(places, failed.at ?? -1)).toEqual({ line: 3, column: 10 });
});

test('many places of a text are those that errors show', () => {
  const source = 'a\n\n😀b😀\n  c\ud83d x\n😀';
  const placeAt = placesOf(source);
  for (let at = 0; at <= source.length; at++) {
    const { line, column } = placeOf(source, at);
    // Inside of a pair there is no column.
    if (/[\udc00-\udfff]/.test(source[at] ?? '')) continue;
    expect([at, placeAt(at)]).toEqual([at, { line, column }]);
  }
});
