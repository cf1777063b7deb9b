import type { Expr, Program } from '../../../hog/ast/index.ts';
import { type Bytecode, compileBytecode } from '../../../hog/bytecode/index.ts';
import { SourceError } from '../../../hog/errors.ts';
import { compileJavaScript, transpile } from '../../../hog/javascript/index.ts';
import type { Parser, SourceKind } from '../../../hog/parser/index.ts';
import { type PausedState, resume, run } from '../../../hog/vm/index.ts';
import { exact } from './compare.ts';
import { STRINGS } from './generate-expression.ts';
import type { Random } from './random.ts';

export interface FuzzCount {
  sources: number;
  parsed: number;
  refused: number;
  ran: number;
  codes: number;
  states: number;
}

const WORDS =
  'let fun fn return if else while for in try catch throw null true false and or not is like ilike between ' +
  'case when then end select from where group by order limit as distinct interval day with union all over ' +
  'print event properties person list x y f jsonParse concat arrayMap length toString fetch sql'.split(' ');
const SIGNS =
  ":= = == != < > <= >= + - * / % || ?? ? : ; , . ?. ( ) [ ] { } -> \\ ' \" ` // -- /* */ f' \\{ \n \t <a/> </ # $ @ \0 é 😀 \u2028".split(
    ' ',
  );
const SEEDS = [
  "let a := [1, 2, {'b': (3, 4)}]; for (let k, v in a) { print(k, v) } return a[3].b.1",
  'fun f(n) { if (n < 2) { return n } else { return f(n - 1) + f(n - 2) } } return f(10)',
  "try { throw HogError('Odd', 'm', {'x': 1}) } catch (e: Odd) { return e.payload } catch (x) { throw x }",
  "return f'Hello {event} {f'{properties.a ?? 1}'}' like '%a_' and 5 between 1 and 9",
  "event = '$pageview' and properties.a not in (1, 'x') or not match(toString(person.properties.email), '^a+$')",
  'select distinct event as e, count(*) from events e left join persons p on e.id = p.id where a > 1.5 group by 1 limit 10',
  'Hello {person.name}, \\{not} {1 + 1.0}',
  "let c := 0; let up := () -> { c := c + 1; return c }; while (up() < 5) { fetch('u', {'n': c}) } return c",
];
const KINDS: SourceKind[] = ['program', 'expression', 'select', 'template'];
const LIMITS = { maxSteps: 20_000, maxMemory: 2_000_000 };

/** A text: noise, words of the language in disorder, or a program with something wrong in it. */
export function randomSource(random: Random): string {
  switch (random.below(5)) {
    case 0:
      return random
        .list(80, () => String.fromCharCode(random.below(random.chance(0.9) ? 128 : 65_536)))
        .join('');
    case 1:
      return random
        .list(40, () => random.pick(random.chance(0.5) ? [...WORDS] : random.chance(0.7) ? SIGNS : STRINGS))
        .join(random.chance(0.7) ? ' ' : '');
    case 2: {
      const [open, close] = random.pick([
        ['(', ')'],
        ['[', ']'],
        ['{', '}'],
        ["f'{", "}'"],
        ['f(', ')'],
        ['not ', ''],
        ['-', ''],
      ]);
      const depth = random.below(14);
      return `${open?.repeat(depth)}${random.pick(['1', 'x', "'a'"])}${close?.repeat(depth)}`;
    }
    default:
      return mutate(random, random.pick(SEEDS));
  }
}

function mutate(random: Random, source: string): string {
  let text = source;
  for (let i = random.below(4); i >= 0; i--) {
    const at = random.below(text.length + 1);
    const length = random.below(6);
    const middle = random.chance(0.5)
      ? random.pick(SIGNS)
      : random.chance(0.5)
        ? text.slice(at - length, at)
        : random.pick(STRINGS);
    text = text.slice(0, at) + middle + text.slice(at + (random.chance(0.6) ? length : 0));
  }
  return text;
}

/** Anything else than a typed error is thrown on, and is what fuzzing looks for. */
export async function fuzzSource(parser: Parser, random: Random, count: FuzzCount): Promise<void> {
  const source = randomSource(random);
  const kind = random.pick(KINDS);
  count.sources++;
  let tree: Program | Expr;
  try {
    tree = await parser[kind](source);
    count.parsed++;
    const code = compileBytecode(tree, source);
    fuzzRun(code, tree, count);
    fuzzCode(random, code, count);
  } catch (error) {
    if (!(error instanceof SourceError))
      throw new Error(`${kind} ${JSON.stringify(source)}: ${String(error)}`, { cause: error });
    if ((error.code === 'syntax' || error.code === 'compile') && error.line === null && error.span !== null) {
      throw new Error(`${kind} ${JSON.stringify(source)}: no place in ${error.message}`);
    }
    count.refused++;
  }
}

const globals = {
  event: 'x',
  properties: { a: [1, 'b'], email: 'a@b.c' },
  person: null,
  list: [1, 2, 3],
  x: 5,
  y: 'z',
};

function fuzzRun(code: Bytecode, tree: Program | Expr, count: FuzzCount): void {
  count.ran++;
  let outcome = run(code, { globals, limits: LIMITS, asyncFunctions: ['fetch'] });
  for (let i = 0; outcome.status === 'paused' && i < 3; i++) {
    const state = JSON.parse(JSON.stringify(outcome.state)) as PausedState;
    outcome = resume(state, { status: i }, { globals, limits: LIMITS, asyncFunctions: ['fetch'] });
  }
  const plain = run(code, { globals, limits: LIMITS });
  try {
    const javaScript = compileJavaScript(tree).run(globals, { limits: LIMITS });
    if (plain.status === 'finished' && javaScript.status === 'finished') {
      const [a, b] = [exact(plain.result), exact(javaScript.result)];
      if (a !== b) throw new Error(`the machine gives ${a}, JavaScript ${b}`);
    }
    transpile(tree);
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
  }
}

/** Code with something changed in it, and a paused state with something changed in it: run, never crash. */
export function fuzzCode(random: Random, code: Bytecode, count: FuzzCount): void {
  const broken = [...code];
  for (let i = random.below(3); i >= 0; i--) {
    const at = random.below(broken.length);
    broken[at] = random.pick([
      random.below(60),
      -random.below(10),
      1e9,
      0.5,
      null,
      true,
      'x',
      '__proto__',
      broken[at] ?? 0,
    ]);
  }
  count.codes++;
  const options = { globals, limits: LIMITS, asyncFunctions: ['fetch', 'concat', 'x'] };
  const outcome = run(broken, options);
  if (outcome.status !== 'paused') return;
  count.states++;
  const text = JSON.stringify(outcome.state);
  const at = random.below(text.length);
  const changed =
    text.slice(0, at) + random.pick(['0', '1', '[', '"', '9', 'null', '{}']) + text.slice(at + 1);
  let state: unknown;
  try {
    state = JSON.parse(changed);
  } catch {
    state = outcome.state;
  }
  resume(state as PausedState, 1, options);
}
