import { describe, expect, test } from '@jest/globals';
import { compileBytecode } from '../../../hog/bytecode/index.ts';
import { compileJavaScript } from '../../../hog/javascript/index.ts';
import { run } from '../../../hog/vm/index.ts';
import { testParser } from '../parser/support.ts';

const parser = testParser();
const limits = { maxSteps: 300_000 };
const host = { host: (value: unknown) => [value] };

/** Runs a text on the machine and as JavaScript. Answers what each printed, and how it ended. */
async function both(source: string, globals: object = {}) {
  const program = await parser.program(source);
  return [
    run(compileBytecode(program), { globals, limits, functions: host }),
    compileJavaScript(program).run(globals, { limits, functions: host }),
  ].map((outcome) => ({
    printed: outcome.printed,
    end: outcome.status === 'failed' ? [outcome.error.code, outcome.error.message] : outcome.status,
  }));
}

const TOO_DEEP = ['depth', 'A value is nested more than 500 levels deep'];

describe('values nest as deep as on the machine', () => {
  test.each([
    ['a list', '[a]'],
    ['a list with other things', "['x', a, 1]"],
    ['a list that is written in a list', '[[a], 1]'],
    ['lists of which only the outer one is too deep', '[[[a], 1], 2]'],
    ['a list far behind', `[${'1, '.repeat(40)}[a]]`],
    ['a tuple', '(a, 1)'],
    ['a dictionary', "{'x': a}"],
    ['a dictionary in a list', "[{'x': [1, {'y': a}]}]"],
    ['a key', '{a: 1}'],
    ['a list function', 'arrayPushBack([], a)'],
    ['a list function that looks at its result', 'arrayPushFront(arrayPushBack([], 1), a)'],
    ['a function of the language', 'arrayMap(x -> a, [1])'],
    ['a filter', 'arrayFilter(x -> true, [a])'],
    ['a fold', 'arrayReduce((x, y) -> [x], [1, 2], a)'],
    ['a tuple by a function', 'tuple(a)'],
    ['an error', "HogError('type', 'message', a)"],
    ['a function of the program', 'wrap(a)'],
    ['an element of a list', 'element(a)'],
    ['an entry of a dictionary', 'entry(a)'],
    ['JSON', "jsonParse(concat('[', jsonStringify(a), ']'))"],
    ['a function of the host', 'host(a)'],
  ])('by %s', async (_name, expression) => {
    const [machine, javaScript] = await both(`
fun wrap(one) { let two := [one]; return two }
fun element(one) { let two := []; two[1] := one; return two }
fun entry(one) { let two := {}; two.x := one; return two }
let a := []
for (let i := 1; true; i := i + 1) { print(i); a := ${expression} }`);
    expect(machine?.end).toEqual(TOO_DEEP);
    expect(javaScript).toEqual(machine);
  });

  test.each([500, 501, 502])('JSON of %i levels', async (levels) => {
    const source = "print('before') let a := jsonParse(text) print('after') return 1";
    const [machine, javaScript] = await both(source, { text: '['.repeat(levels) + ']'.repeat(levels) });
    expect(machine?.end).toEqual(levels <= 501 ? 'finished' : TOO_DEEP);
    expect(javaScript).toEqual(machine);
  });

  test('lists that only grow wide are no deeper', async () => {
    const source = `let a := [] let d := {}
for (let i := 0; i < 2000; i := i + 1) {
  a := arrayPushBack(a, [[i], {'x': [i]}])
  d[toString(i % 7)] := {'last': [i], 'text': 'x'}
  a[1] := d
}
return [length(a), jsonStringify(d['3'])]`;
    const ends = (await both(source)).map(({ end }) => end);
    expect(ends).toEqual(['finished', 'finished']);
  });

  test('a literal of which nothing can be deep is not measured', async () => {
    const { code } = compileJavaScript(
      await parser.program("return [1, 'x', {'y': (1 + x, [x = 2, not x])}, [], f(x)]"),
    );
    expect(code.match(/, \d+, E\)/g)).toEqual([', 12, E)']);
  });
});
