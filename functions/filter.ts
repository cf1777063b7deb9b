// Filters as functions of JavaScript. They are made in threads, and where events come in.
import { decompileExpression } from '../hog/bytecode/decompile.ts';
import type { Bytecode } from '../hog/bytecode/index.ts';
import { compileJavaScript } from '../hog/javascript/index.ts';
import { matches, type Surroundings, surroundingsIn } from './evaluate.ts';
import type { Globals } from './rules/globals.ts';

export type Verdict = { matched: boolean; error?: string };
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

/** Compiles a filter to JavaScript where that is possible. Otherwise the machine runs it. */
export function filterOf(bytecode: Bytecode | null, moment: Moment): Filter {
  const expression = bytecode && decompileExpression(bytecode);
  const interpreted: Filter = (globals) => matches(bytecode, globals, moment.surroundings);
  if (!expression) return interpreted;
  try {
    const evaluate = compileJavaScript(expression).evaluator({
      now: () => moment.now,
      random: () => moment.random(),
      limits: { maxSteps: MOST_STEPS },
    });
    return (globals) => {
      try {
        return evaluate(globals) === true ? YES : NO;
      } catch (error) {
        return { matched: false, error: (error as Error).message };
      }
    };
  } catch {
    return interpreted;
  }
}
