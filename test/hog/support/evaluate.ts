import type { Bytecode } from '../../../hog/bytecode/index.ts';
import { HogFailure, type RunOptions, run } from '../../../hog/vm/index.ts';

/** The result of a program that does not wait; its failure is thrown. */
export function evaluate(bytecode: Bytecode, options: RunOptions = {}): unknown {
  const outcome = run(bytecode, options);
  if (outcome.status === 'finished') return outcome.result;
  if (outcome.status === 'failed') throw outcome.error;
  throw new HogFailure('async', `Unexpected async function call: ${outcome.call.name}`);
}
