import vm from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import { compileBytecode } from '../../../hog/bytecode/index.ts';
import { compileJavaScript, transpileAll } from '../../../hog/javascript/index.ts';
import { run } from '../../../hog/vm/index.ts';
import { rounds } from '../../support/rounds.ts';
import { exact } from '../support/compare.ts';
import { JAVASCRIPT_WORDS, oddCalls } from '../support/odd-calls.ts';

const options = {
  limits: { maxSteps: 500_000, maxMemory: 4_000_000 },
  clock: () => 1.7e12,
  random: () => 0.25,
};
const calls = [...oddCalls(rounds(20, 2_000))];

type Said = { status: string; result?: unknown; error?: { message: string } };
const said = ({ status, result, error }: Said): string =>
  error ? error.message : `${status} ${exact(result)}`;
const SIGNING = /^(?:sha|md5)/;

describe('library functions with odd arguments', () => {
  test('say what is wrong in words of the language, and the machine and JavaScript agree', () => {
    const foreign: string[] = [];
    const differences: string[] = [];
    let finished = 0;
    for (const { text, node } of calls) {
      const machine = said(run(compileBytecode(node), options) as Said);
      if (machine.startsWith('finished')) finished++;
      else if (JAVASCRIPT_WORDS.test(machine)) foreign.push(`${text}: ${machine}`);
      if (!compiles(node)) continue;
      const javaScript = said(compileJavaScript(node).run({}, options) as Said);
      if (machine !== javaScript) differences.push(`${text}: ${machine} but ${javaScript}`);
    }
    expect(foreign).toEqual([]);
    expect(differences).toEqual([]);
    expect(finished).toBeGreaterThan(calls.length / 3);
  });

  test('are answered alike in browsers', () => {
    const context = vm.createContext({ TextEncoder, TextDecoder, atob, btoa, crypto: globalThis.crypto });
    const names = [...new Set(calls.map(({ name }) => name))].filter(
      (name) => !SIGNING.test(name) && !/^(?:now|today|randomFloat|generateUUIDv4)$/.test(name),
    );
    const differences: string[] = [];
    for (const name of names) {
      const own = calls.filter((one) => one.name === name && compiles(one.node));
      const code = transpileAll(own.map(({ node }) => node)).code;
      const compiled = vm.runInContext(code, context) as ((globals: object, options: object) => unknown)[];
      for (const [at, { text, node }] of own.entries()) {
        const outcome = run(compileBytecode(node), options);
        if (outcome.status === 'failed' && outcome.error.code === 'memory') continue;
        const machine = said(outcome as Said);
        let browser: string;
        try {
          browser = `finished ${exact(compiled[at]?.({}, { onPrint: () => undefined, maxSteps: 500_000 }))}`;
        } catch (error) {
          browser = (error as Error).message;
          expect(browser).not.toMatch(JAVASCRIPT_WORDS);
        }
        const patterns = [machine, browser].filter((one) => one.startsWith('Invalid regular expression'));
        if (patterns.length === 2) continue;
        if (machine !== browser) differences.push(`${text}: ${machine} but ${browser}`.slice(0, 300));
      }
    }
    expect(differences).toEqual([]);
  });
});

function compiles(node: Parameters<typeof compileJavaScript>[0]): boolean {
  try {
    compileJavaScript(node);
    return true;
  } catch {
    return false;
  }
}
