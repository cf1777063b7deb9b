import { compileBytecode } from '../../../hog/bytecode/index.ts';
import { type Outcome, type RunOptions, run } from '../../../hog/vm/index.ts';
import { testParser } from '../parser/support.ts';

export const parser = testParser();

export const compile = async (source: string) => compileBytecode(await parser.program(source), source);

export const runSource = async (source: string, options?: RunOptions): Promise<Outcome> =>
  run(await compile(source), options);

export function failure(outcome: Outcome): [code: string, message: string] {
  if (outcome.status !== 'failed') throw new Error(`expected a failure, got ${JSON.stringify(outcome)}`);
  return [outcome.error.code, outcome.error.message];
}

export function result(outcome: Outcome): unknown {
  if (outcome.status === 'finished') return outcome.result;
  throw new Error(`expected a result, got ${outcome.status === 'failed' ? outcome.error : outcome.status}`);
}
