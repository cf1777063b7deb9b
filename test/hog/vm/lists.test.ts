import vm from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import hogvm from '@posthog/hogvm';
import type { Program } from '../../../hog/ast/index.ts';
import { compileBytecode } from '../../../hog/bytecode/index.ts';
import { compileJavaScript, transpile } from '../../../hog/javascript/index.ts';
import { copies } from '../../../hog/runtime/lists.ts';
import { type Outcome, resume, run } from '../../../hog/vm/index.ts';
import { rounds } from '../../support/rounds.ts';
import { testParser } from '../parser/support.ts';
import { ListPrograms } from '../support/generate-lists.ts';
import { Random } from '../support/random.ts';

const parser = testParser();
const limits = { maxSteps: 300_000, maxMemory: 4_000_000 };
const made = (seed: number, naive: boolean): Program => new ListPrograms(new Random(seed), naive).program();

/** Runs a program to its end. `pause` really pauses, and the state goes through JSON. */
function paused(program: Program): string {
  const options = { limits, asyncFunctions: ['pause'] };
  const printed: string[] = [];
  let outcome: Outcome = run(compileBytecode(program), options);
  while (outcome.status === 'paused') {
    printed.push(...outcome.printed);
    outcome = resume(JSON.parse(JSON.stringify(outcome.state)), null, options);
  }
  return said([...printed, ...outcome.printed], outcome);
}

function said(
  printed: string[],
  { status, error }: { status: string; error?: { code: string; message: string } },
): string {
  return [...printed, error && error.code !== 'runtime' ? error.code : (error?.message ?? status)].join('\n');
}

const functions = { pause: () => null };
const atOnce = (program: Program): string => {
  const outcome = run(compileBytecode(program), { limits, functions }) as Extract<
    Outcome,
    { printed: string[] }
  >;
  return said(outcome.printed, outcome as never);
};
const inJavaScript = (program: Program): string => {
  const outcome = compileJavaScript(program).run({}, { limits, functions });
  return said(outcome.printed, outcome as never);
};
const context = vm.createContext({ TextEncoder, TextDecoder });
const inBrowser = (program: Program): string => {
  const call = vm.runInContext(`(${transpile(program).code})`, context) as (
    globals: object,
    options: object,
  ) => unknown;
  const printed: string[] = [];
  try {
    call({}, { functions, onPrint: (line: string) => printed.push(line) });
    return said(printed, { status: 'finished' });
  } catch (error) {
    return said(printed, { status: 'failed', error: { code: 'runtime', message: (error as Error).message } });
  }
};
function inReference(program: Program): string {
  const printed: string[] = [];
  const print = (...args: unknown[]) => {
    printed.push(args.map((one) => hogvm.printHogStringOutput(one)).join(' '));
    return null;
  };
  const { error } = hogvm.exec(compileBytecode(program), { functions: { ...functions, print } });
  return said(
    printed,
    error ? { status: 'failed', error: { code: 'runtime', message: String(error) } } : { status: 'finished' },
  );
}

describe('lists have the values that copies would have', () => {
  test('in random programs, over pauses, in JavaScript and in browsers', () => {
    const differences: string[] = [];
    const wanted = rounds(700, 60_000);
    let compared = 0;
    let before = copies.elements;
    let naiveCopies = 0;
    let ownCopies = 0;
    for (let seed = 1; compared < wanted; seed++) {
      const [naive, program] = [made(seed, true), made(seed, false)];
      before = copies.elements;
      const expected = atOnce(naive);
      naiveCopies += copies.elements - before;
      if (/^(?:steps|memory|depth)$/m.test(expected)) continue;
      before = copies.elements;
      const seen: Record<string, string> = { atOnce: atOnce(program) };
      ownCopies += copies.elements - before;
      seen.paused = paused(program);
      seen.javaScript = inJavaScript(program);
      if (seed % 5 === 0) seen.browser = inBrowser(program);
      compared++;
      for (const [where, one] of Object.entries(seen)) {
        if (one !== expected) differences.push(`${seed} ${where}: ${one}\nbut ${expected}`.slice(0, 1_500));
      }
    }
    expect(differences).toEqual([]);
    // The programs do run in place.
    expect(ownCopies).toBeLessThan(naiveCopies * 0.9);
  });

  test('as in the reference machine', () => {
    const differences: string[] = [];
    let compared = 0;
    for (let seed = 1; compared < rounds(150, 10_000); seed++) {
      const program = made(seed, false);
      const ours = atOnce(program);
      // A function of the host receives no tuples, and the reference leaves holes where we have nulls.
      if (!ours.endsWith('finished') || /\(|null/.test(ours)) continue;
      compared++;
      const theirs = inReference(program);
      if (ours !== theirs) differences.push(`${seed}: ${ours}\nbut ${theirs}`.slice(0, 1_500));
    }
    expect(differences).toEqual([]);
  });
});

const N = 10_000;
const repeat = (step: string, first = '[]') =>
  `let a := ${first} for (let i := 0; i < ${N}; i := i + 1) { ${step} } return length(a)`;
const identity = '(x -> x)';

describe('changing a list costs the same, however long it is', () => {
  test.each([
    ['arrayPushBack', repeat('a := arrayPushBack(a, i)'), N],
    ['dictionaries', repeat("a := arrayPushBack(a, {'key': i, 'list': [1, 2, 3]})"), N],
    ['arrayPushFront', repeat('a := arrayPushFront(a, i)'), N],
    ['arrayPopBack', repeat('a := arrayPopBack(a)', `range(${N})`), 0],
    ['arrayPopFront', repeat('a := arrayPopFront(a)', `range(${N})`), 0],
    [
      'with calls',
      repeat(`a := arrayPushBack(a, ${identity}(i))`)
        .replace(identity, 'f')
        .replace('let a', `let f := ${identity} let a`),
      N,
    ],
    [
      'looked at',
      repeat('if (not has(range(3), a[-1]) or length(a) < 9) { a := arrayPushBack(a, a[1]) }'),
      N,
    ],
    ['captured', repeat('f(i)').replace('for', 'let f := x -> { a := arrayPushBack(a, x) } for'), N],
    ['mapped', `return length(arrayFilter(x -> true, arrayMap(x -> [x], range(${N}))))`, N],
    ['elements', repeat('a[i + 1] := i'), N],
    ['keys', repeat('a[toString(i)] := i', '{}').replace('length(a)', 'length(keys(a))'), N],
  ])('%s', async (_name, source, length) => {
    const program = await parser.program(source);
    for (const attempt of [
      () => run(compileBytecode(program), {}),
      () => compileJavaScript(program).run({}),
    ]) {
      const before = copies.elements;
      const outcome = attempt();
      expect(outcome).toMatchObject({ status: 'finished', result: length });
      expect(copies.elements - before).toBeLessThanOrEqual(N);
      const steps = 'usage' in outcome ? outcome.usage.steps : (outcome as { steps: number }).steps;
      expect(steps).toBeLessThan(60 * N);
    }
  });

  test('memory is still counted', async () => {
    for (const step of [
      "a := arrayPushBack(a, 'a text of some length')",
      'a := arrayPushBack(a, [a, a])',
      'a := [a]',
    ]) {
      const program = await parser.program(`let a := [] while (true) { ${step} }`);
      for (const outcome of [
        run(compileBytecode(program), { limits: { maxMemory: 1_000_000 } }),
        compileJavaScript(program).run({}, { limits: { maxMemory: 1_000_000 } }),
      ]) {
        expect(outcome).toMatchObject({
          status: 'failed',
          error: { code: expect.stringMatching(/memory|depth/) },
        });
      }
    }
  });

  test('values that contain each other are measured as they are', async () => {
    const source = `let parent := {'list': []}
for (let i := 0; i < 300; i := i + 1) {
  let child := {'parent': parent}
  parent.list := arrayPushBack(parent.list, child)
  parent.last := child
}
return length(parent.list)`;
    const program = await parser.program(source);
    for (const outcome of [run(compileBytecode(program), {}), compileJavaScript(program).run({})]) {
      expect(outcome).toMatchObject({ status: 'finished', result: 300 });
    }
  });

  test('what is put into a value and taken out of it again is counted while it lives', async () => {
    const source = `let kept := [] let d := {}
for (let i := 0; i < 2000; i := i + 1) {
  let l := [] d.l := l
  for (let j := 1; j < 200; j := j + 1) { l[j] := 'some text of thirty characters' }
  d.l := null
  kept[i + 1] := () -> l
}`;
    const outcome = run(compileBytecode(await parser.program(source)), {
      limits: { maxMemory: 2_000_000, maxSteps: 1e9 },
    });
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'memory' } });
  });
});
