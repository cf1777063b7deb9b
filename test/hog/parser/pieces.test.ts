import { describe, expect, test } from '@jest/globals';
import { type Piece, splitProgram } from '../../../hog/parser/split.ts';
import { programText } from '../support/program-text.ts';
import { Random } from '../support/random.ts';
import { bothWays } from '../support/whole.ts';
import { testParser } from './support.ts';

/** The texts that are parsed, those inside of others indented. */
function texts(pieces: Piece[] | null, indent = ''): string[] {
  return (pieces ?? []).flatMap((piece) => [
    indent + piece.text.trim().replace(/ +/g, ' '),
    ...[...piece.holes.values()].flatMap((hole) => texts(hole.pieces, `${indent}> `)),
  ]);
}

const split = (source: string) => texts(splitProgram(source, 100));

describe('a program is cut', () => {
  test.each<[string, string[]]>([
    ['a; b', ['a;', 'b']],
    ['let a := 1 let b := 2', ['let a := 1', 'let b := 2']],
    ['f(x)\nreturn y', ['f(x)', 'return y']],
    ['f(x)\ng(y)', ['f(x)\ng(y)']],
    ['if (a) { b(1) ; c }', ["if (a) ' '", '> b(1) ;', '> c']],
    ['if (a) { b(1) };', ['if (a) {/* */};', '> b(1)']],
    ['while (a) { b(1) }', ["while (a) ' '", '> b(1)']],
    ['fun f(x) { return x } f(1)', ['fun f(x) {/* */} f(1)', '> return x']],
    ['try { a(123) } catch (e) { b(e.x) }', ['try {/* */} catch (e) {/* */}', '> a(123)', '> b(e.x)']],
    [
      'if (a) { b(1) } else if (c) { d(1) } else { e(1) }',
      ["if (a) ' ' else ' '", '> b(1)', "> if (c) ' ' else ' '", '> > d(1)', '> > e(1)'],
    ],
  ])('%s', (source, expected) => {
    expect(split(source)).toEqual(expected);
  });

  // In each a statement goes on where one could seem to begin, or braces are no block.
  test.each([
    'if (a) b; else c',
    'if (a) return b',
    'if (a) while (b) c',
    'x := if(a, b, c)',
    'x := a ? if : for',
    'a.if (b) { c(1, 2) }',
    'return if(a, b, c)',
    'x := y -> { let z := 1; return z }',
    "while (a) {'key': 1} := 2",
    'while (a) { b(1) } (c)',
    'while (a) { b(1) } in c',
    'while (a) b;;',
    'x := \'let a := 1; let b\' || `; let c` || "; let d"',
    "f'{'; let'} ; let {f'{1}; let'}'",
    '/* ; let a */ b // ; let c',
  ])('%s stays whole', (source) => {
    expect(split(source)).toEqual([source]);
  });

  test.each([
    '<a/>; let x',
    "F'; let x",
    "'; let x",
    '{ let x',
    'a) let x',
    'é; let x',
    '/* let x',
    "'\\q' let x",
  ])('%s is left to the parser', (source) => {
    expect(splitProgram(source, 100)).toBeNull();
  });
});

describe('the tree is that of the whole program', () => {
  test.each([
    "if (a) {'key': 1} else {'key': 2}",
    'if (a) { {b} } else { {} }; if (c) {;;;} ;',
    "let a := '😀'; if (b) { print('😀', \"é\") } else { print('😀😀') }; fun f() { return '😀' }",
    'let a := 1;\n// é\nlet b := 2; let c := + ;',
    'if (a) { b(c } else { d }',
    'try { a(b); } finally { c(d); }\nlet e',
    'for (let k, v in a) { if (k) { return v } else if (v) { return k } ; throw k }',
    '',
    ' // nothing\n',
    ';;',
  ])('%s', async (source) => {
    const { whole, pieces } = await bothWays(source);
    expect(pieces).toBe(whole);
  });

  test('of random programs, right and wrong ones', async () => {
    let cut = 0;
    let read = 0;
    for (let seed = 1; cut < 30; seed++) {
      const random = new Random(seed);
      let source = programText(random, 2);
      if (source.length > 250) continue;
      if (random.chance(0.2)) {
        const at = random.below(source.length + 1);
        const wrong = random.pick(['}', '{', '(', ';', 'else', 'let', "'", ' return ']);
        source = source.slice(0, at) + wrong + source.slice(at + random.below(3));
      }
      const { whole, pieces, texts: parsed } = await bothWays(source);
      if (pieces !== whole) throw new Error(`${JSON.stringify(source)}\n${whole}\n${pieces}`);
      if (parsed.length > 1) cut++;
      if (whole.startsWith('{')) read++;
    }
    expect(read).toBeGreaterThan(10);
  });
});

describe('programs that are too much as a whole', () => {
  const parser = testParser({ workers: 2 });

  test('a long chain of `else if` is read, and its end is in its place', async () => {
    const source = Array.from({ length: 60 }, (_, i) => `if (a = ${i}) { print(${i}) }`).join(' else ');
    let { declarations } = await parser.program(`${source}; let b := 1`);
    expect(declarations).toHaveLength(2);
    let depth = 0;
    for (let one = declarations[0]; one?.kind === 'ifStatement'; one = one.alternative ?? undefined) {
      expect(source.slice(one.span?.start, one.span?.end).startsWith(`if (a = ${depth}) {`)).toBe(true);
      expect(one.span?.end).toBe(source.length);
      depth++;
    }
    expect(depth).toBe(60);
    declarations = (await parser.program(`${'if (a) { '.repeat(40)}print(1)${' }'.repeat(40)}`)).declarations;
    expect(declarations).toHaveLength(1);
  });

  test('an error far in has its place, and the parts before it are not read twice', async () => {
    const lines = Array.from({ length: 60 }, (_, i) => `let a${i} := ${i === 40 ? '+ ;' : i}`);
    await expect(parser.program(lines.join('\n'))).rejects.toMatchObject({ line: 41, column: 14 });
    const { texts: parsed } = await bothWays(lines.join('\n'));
    expect(parsed.at(-1)).toBe(lines.slice(40).join('\n'));
  });

  test('deeper than a tree may be is refused before it is parsed', async () => {
    const source = `${'if (a) { b(1) } else '.repeat(1_100)}{ c(1) }`;
    await expect(parser.program(source)).rejects.toMatchObject({ code: 'too_deep' });
  });

  test('all pieces together have one time limit', async () => {
    const hasty = testParser({ programTimeoutMs: 400, workers: 2 });
    const source = Array.from({ length: 3_000 }, (_, i) => `let a${i} := f(g(h(${i}, x), y), z)`).join('\n');
    await expect(hasty.program(source)).rejects.toMatchObject({ code: 'timeout' });
  });
});
