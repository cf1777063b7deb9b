// Filters as functions of JavaScript. They are made in threads, and where events come in.
import { decompileExpression } from '../hog/bytecode/decompile.ts';
import type { Bytecode } from '../hog/bytecode/index.ts';
import { compileJavaScript, type JavaScriptOptions } from '../hog/javascript/index.ts';
import { HogFailure } from '../hog/vm/index.ts';
import { COHORT_TEST, cohortTest } from '../properties/index.ts';
import { matches, type Surroundings, surroundingsIn } from './evaluate.ts';
import type { Globals } from './rules/globals.ts';

/** `isHeavy`: it took more than it may. */
export type Verdict = { matched: boolean; error?: string; isHeavy?: boolean };
export type Filter = (globals: Globals) => Verdict;

/** The time that code sees while it looks at an event, and what its random numbers follow from. */
export class Moment {
  now = 0;
  #seed: () => number = () => 0;
  #random: (() => number) | undefined;

  set(now: number, seed: () => number): void {
    this.now = now;
    this.#seed = seed;
    this.#random = undefined;
  }

  get surroundings(): Surroundings {
    return surroundingsIn({ now: this.now, seed: this.#seed() });
  }

  random(): number {
    this.#random ??= this.surroundings.random;
    return this.#random();
  }
}

/** Steps of a filter. There is no limit of time: so a filter that runs in a busy machine is not stopped at another place. */
const MOST_STEPS = 1_000_000;

const YES: Verdict = { matched: true };
const NO: Verdict = { matched: false };

/** Answers whether a failure says that code took too much time or memory. */
export const isHeavy = ({ code }: Pick<HogFailure, 'code'>): boolean => HEAVY.has(code);
const HEAVY: ReadonlySet<string> = new Set(['time', 'memory', 'steps']);

/** Compiles a filter to JavaScript where that is possible. Otherwise the machine runs it. */
export function filterOf(
  bytecode: Bytecode | null,
  moment: Moment,
  { limits = { maxSteps: MOST_STEPS }, clock }: Pick<JavaScriptOptions, 'limits' | 'clock'> = {},
): Filter {
  const interpreted: Filter = (globals) => matches(bytecode, globals, moment.surroundings);
  try {
    const expression = bytecode && decompileExpression(bytecode);
    if (!expression) return interpreted;
    const evaluate = compileJavaScript(expression).evaluator({
      now: () => moment.now,
      random: () => moment.random(),
      limits,
      functions: { [COHORT_TEST]: cohortTest(() => moment.now) },
      ...(clock ? { clock } : {}),
    });
    return (globals) => {
      try {
        return evaluate(globals) === true ? YES : NO;
      } catch (error) {
        const { message } = error as Error;
        return { matched: false, error: message, isHeavy: error instanceof HogFailure && isHeavy(error) };
      }
    };
  } catch {
    return interpreted;
  }
}

/** Answers whether code runs as JavaScript, with limits of its own. */
export function isJavaScript(bytecode: Bytecode | null): boolean {
  const expression = bytecode && decompileExpression(bytecode);
  if (!expression) return bytecode === null;
  try {
    compileJavaScript(expression);
    return true;
  } catch {
    return false;
  }
}
