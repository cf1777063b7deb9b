import type { Bytecode, Places } from '../hog/bytecode/index.ts';
import { type Failure, ThreadError, ThreadPool } from '../hog/threads/pool.ts';
import type { FunctionSource, JavaScriptProgram } from './compile.ts';
import { type CompiledContent, type Fault, FunctionError } from './rules/definition.ts';

export interface FunctionCompilerOptions {
  threads?: number;
  /** How long one function may take. After that, its thread is ended. */
  timeoutMs?: number;
  maxWaiting?: number;
  /** The most functions of one project that wait. */
  maxWaitingOfOne?: number;
}

export type CompilerJob =
  | { source: FunctionSource }
  | { program: string }
  | { program: string; bytecode: Bytecode };
export type Compiled = CompiledContent | JavaScriptProgram | Places | null;

/** Checks and compiles functions, in threads of its own: users decide what that costs. */
export interface FunctionCompiler {
  /** Throws a FunctionError, a FunctionCompilerBusyError, or the reason of the signal when it is aborted. */
  compile(projectId: number, source: FunctionSource, signal?: AbortSignal): Promise<CompiledContent>;
  /** Compiles a program that runs without waiting to JavaScript. Throws the same. */
  program(projectId: number, hog: string): Promise<JavaScriptProgram>;
  /** Says where each part of a program is in its text. Null: the text no longer compiles to this code. */
  places(projectId: number, hog: string, bytecode: Bytecode): Promise<Places | null>;
  close(): Promise<void>;
}

export const FUNCTION_COMPILER_DEFAULTS = {
  // One more than needed: one project never has all threads.
  threads: 2,
  timeoutMs: 15_000,
  maxWaiting: 200,
  maxWaitingOfOne: 20,
} satisfies Required<FunctionCompilerOptions>;

/** A function was not compiled, but may be later: too many are waiting. */
export class FunctionCompilerBusyError extends Error {
  override readonly name = 'FunctionCompilerBusyError';
}

export function createFunctionCompiler(options: FunctionCompilerOptions = {}): FunctionCompiler {
  const { timeoutMs, ...settings } = { ...FUNCTION_COMPILER_DEFAULTS, ...options };
  const pool = new ThreadPool<CompilerJob, Compiled>({
    entry: new URL('./thread.ts', import.meta.url),
    ...settings,
  });
  const run = (projectId: number, job: CompilerJob, signal?: AbortSignal) =>
    pool.run(job, { limitMs: timeoutMs, usedMs: 0 }, String(projectId), signal).catch((error: unknown) => {
      throw error instanceof ThreadError ? translated(error, timeoutMs) : error;
    });
  return {
    compile: (projectId, source, signal) => run(projectId, { source }, signal) as Promise<CompiledContent>,
    program: (projectId, hog) => run(projectId, { program: hog }) as Promise<JavaScriptProgram>,
    places: (projectId, hog, bytecode) =>
      run(projectId, { program: hog, bytecode }) as Promise<Places | null>,
    close: () => pool.close(),
  };
}

function translated({ code, message, failure }: ThreadError, limitMs: number): Error {
  if (failure) return thrown(failure);
  if (code === 'busy') {
    return new FunctionCompilerBusyError('Too many functions are being compiled at the moment. Try again.');
  }
  const what = code === 'timeout' ? `takes more than ${limitMs / 1000} seconds to compile` : 'is too large';
  return new FunctionError('hog', `The function ${what}. Make it simpler.`, {
    ...(code === 'lost' ? { reason: message } : {}),
  });
}

/** Restores an error of a thread. */
function thrown({ name, message, fault }: Failure): Error {
  if (name !== 'FunctionError') return new Error(`The function could not be compiled: ${name}: ${message}`);
  const { field, message: sentence, ...more } = fault as Fault;
  return new FunctionError(field, sentence, more);
}
