// Evaluates code that only looks at an event: filters, templates and keys of masking. It is called in threads.
import type { Bytecode } from '../hog/bytecode/index.ts';
import { type Limits, type Outcome, run } from '../hog/vm/index.ts';
import { COHORT_TEST, cohortTest } from '../properties/index.ts';
import type { Frame } from './rules/frame.ts';
import type { Globals } from './rules/globals.ts';
import type { MaskKey } from './rules/masking.ts';

export interface MatchJob {
  kind: 'match';
  /** The bytecode of filters. Null: they could not be compiled. */
  filters: (Bytecode | null)[];
  globals: Globals;
  frame: Frame;
}
export type Match = { matched: boolean; error?: string };

export interface MaskJob {
  kind: 'mask';
  bytecode: Bytecode;
  globals: Globals;
  frame: Frame;
}

/** Of the whole program, without what it waits for. Its time is what counts, so steps have no limit of their own. */
export const PROGRAM_LIMITS: Partial<Limits> = {
  maxSteps: Number.MAX_SAFE_INTEGER,
  maxMilliseconds: 550,
  maxMemory: 64 * 1024 * 1024,
  maxAsyncSteps: 5,
};
/** Of code that waits for nothing. */
export const TEMPLATE_LIMITS: Partial<Limits> = { ...PROGRAM_LIMITS, maxAsyncSteps: 0 };

const MASK_LIMITS: Partial<Limits> = { ...TEMPLATE_LIMITS, maxMilliseconds: 50 };

/** Random numbers that follow from a seed. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
}

/**
 * The processor time of this thread in milliseconds. Limits count it: a program that waits for the processor behind others
 * is not slow.
 */
export function processorTime(): number {
  const { user, system } = process.threadCpuUsage();
  return Math.floor((user + system) / 1000);
}

/** What code sees of the world beside the event. Everything that belongs to one step shares its random numbers. */
export interface Surroundings {
  clock(): number;
  now(): number;
  random(): number;
}

/** `step` counts the steps of a run before this one, so that each has random numbers of its own. */
export const surroundingsIn = ({ now, seed }: Frame, step = 0): Surroundings => ({
  clock: processorTime,
  now: () => now,
  random: randomOf(Math.imul(seed ^ step, 0x9e3779b1) + step),
});

/** Only true is a match: a filter that ends in 1 does not match. */
export function matches(bytecode: Bytecode | null, globals: Globals, around: Surroundings): Match {
  if (!bytecode) {
    return { matched: false, error: 'Filters were not compiled correctly and so could not be executed' };
  }
  const functions = { [COHORT_TEST]: cohortTest(around.now) };
  const outcome = run(bytecode, { ...around, globals, functions, limits: TEMPLATE_LIMITS });
  if (outcome.status === 'finished') return { matched: outcome.result === true };
  return { matched: false, error: errorOf(outcome) };
}

export function maskKey(bytecode: Bytecode, globals: Globals, around: Surroundings): MaskKey {
  const outcome = run(bytecode, { ...around, globals, limits: MASK_LIMITS });
  if (outcome.status !== 'finished') return { key: null, error: errorOf(outcome) };
  const { result } = outcome;
  return { key: result ? (typeof result === 'string' ? result : JSON.stringify(result)) : null };
}

export const errorOf = (outcome: Outcome): string =>
  outcome.status === 'failed'
    ? outcome.error.message
    : 'The code waits for something, which it may not do here';
