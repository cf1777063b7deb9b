import crypto from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import hogvm from '@posthog/hogvm';
import type { Expr, Program } from '../../../hog/ast/index.ts';
import { compileBytecode } from '../../../hog/bytecode/index.ts';
import { regexExtract, regexMatch } from '../../../hog/runtime/regex.ts';
import { toHost } from '../../../hog/runtime/values.ts';
import { run } from '../../../hog/vm/index.ts';
import { rounds } from '../../support/rounds.ts';
import { compareBoth, exact } from '../support/compare.ts';
import { randomExpr, randomGlobals } from '../support/generate-expression.ts';
import { randomProgram } from '../support/generate-program.ts';
import { Random } from '../support/random.ts';

const EXPRESSIONS = rounds(4_000, 220_000);
const PROGRAMS = rounds(500, 23_000);
const REFERENCES = rounds(1_250, 60_000);

interface Tally {
  compared: number;
  finished: number;
  limited: number;
  refused: number;
  differences: string[];
}

function compareMany(
  count: number,
  make: (seed: number) => [Expr | Program, Record<string, unknown>],
): Tally {
  const tally: Tally = { compared: 0, finished: 0, limited: 0, refused: 0, differences: [] };
  for (let seed = 0; seed < count; seed++) {
    const [node, globals] = make(seed);
    const { machine, javaScript, limited, refused } = compareBoth(node, globals, seed % 2 === 0);
    if (refused) tally.refused++;
    else if (limited) tally.limited++;
    else {
      tally.compared++;
      if (machine.status === 'finished') tally.finished++;
      if (exact(machine) !== exact(javaScript)) {
        tally.differences.push(`seed ${seed}: ${exact(machine)} but ${exact(javaScript)}`.slice(0, 500));
      }
    }
  }
  return tally;
}

describe('the machine and JavaScript agree', () => {
  test('on random expressions', () => {
    const tally = compareMany(EXPRESSIONS, (seed) => {
      const random = new Random(seed);
      const globals = randomGlobals(random);
      return [randomExpr(random, 1 + random.below(4)), globals];
    });
    expect(tally.differences).toEqual([]);
    expect(tally.compared).toBeGreaterThanOrEqual(EXPRESSIONS * 0.9);
    expect(tally.finished).toBeGreaterThan(EXPRESSIONS * 0.68);
  });

  test('on random programs', () => {
    const tally = compareMany(PROGRAMS, (seed) => {
      const random = new Random(1_000_000 + seed);
      const globals = randomGlobals(random);
      return [randomProgram(random), globals];
    });
    expect(tally.differences).toEqual([]);
    expect(tally.compared).toBeGreaterThanOrEqual(PROGRAMS * 0.87);
    expect(tally.finished).toBeGreaterThan(PROGRAMS * 0.22);
  });
});

test('the machine gives what the reference machine gives', () => {
  const differences: string[] = [];
  let compared = 0;
  for (let seed = 0; seed < REFERENCES; seed++) {
    const random = new Random(5_000_000 + seed);
    const globals = randomGlobals(random);
    const node = randomExpr(random, 1 + random.below(3));
    // Of these the reference makes JavaScript's undefined, or leaves the stack out of balance.
    if (/"name":"(length|if|multiIf|tryBase64Decode)"/.test(JSON.stringify(node))) continue;
    const code = compileBytecode(node);
    const ours = run(code, { globals });
    if (ours.status === 'failed' && ours.error.code !== 'runtime') continue;
    const reference = hogvm.exec(code, {
      globals,
      external: { crypto, regex: { match: regexMatch, extract: regexExtract } },
    });
    // Newer versions of the reference give null where this one fails on null, and so does this project.
    if (/of null|null to object|in null/.test(String(reference.error))) continue;
    // It makes something of wrong arguments: today, or a time without a number.
    if (ours.status === 'failed' && / needs a /.test(ours.error.message)) continue;
    compared++;
    const theirs = reference.error ? 'failed' : exact(toHost(reference.result));
    const got = ours.status === 'finished' ? exact(ours.result) : ours.status;
    if (got !== theirs) differences.push(`seed ${seed}: ${got} but ${theirs}`.slice(0, 500));
  }
  expect(differences).toEqual([]);
  expect(compared).toBeGreaterThan(REFERENCES * 0.66);
});
