import type { Bytecode } from '../hog/bytecode/index.ts';
import { ThreadError, ThreadPool } from '../hog/threads/pool.ts';
import { FilterError } from '../properties/index.ts';
import type { ActionSource } from './compile-steps.ts';

/** Compiles actions in threads of its own: users decide what that costs. */
export interface ActionCompiler {
  /**
   * Compiles as `compileSteps` does. Throws a FilterError, an ActionCompilerBusyError, or the reason of the signal when it
   * is aborted.
   */
  compile(projectId: number, source: ActionSource, signal?: AbortSignal): Promise<Bytecode>;
  close(): Promise<void>;
}

export interface ActionCompilerOptions {
  threads?: number;
  /** How long one action may take. After that, its thread is ended. */
  timeoutMs?: number;
  maxWaiting?: number;
  /** The most actions of one project that wait. */
  maxWaitingOfOne?: number;
}

const DEFAULTS = {
  // One more than needed: one project never has all threads.
  threads: 2,
  timeoutMs: 5_000,
  maxWaiting: 200,
  maxWaitingOfOne: 20,
} satisfies Required<ActionCompilerOptions>;

/** Too many actions are waiting to be compiled. */
export class ActionCompilerBusyError extends Error {
  override readonly name = 'ActionCompilerBusyError';
}

export function createActionCompiler(options: ActionCompilerOptions = {}): ActionCompiler {
  const { timeoutMs, ...settings } = { ...DEFAULTS, ...options };
  const pool = new ThreadPool<ActionSource, Bytecode>({
    entry: new URL('./thread.ts', import.meta.url),
    ...settings,
  });
  return {
    compile: (projectId, source, signal) =>
      pool
        .run(source, { limitMs: timeoutMs, usedMs: 0 }, String(projectId), signal)
        .catch((error: unknown) => {
          throw error instanceof ThreadError ? translated(error, timeoutMs) : error;
        }),
    close: () => pool.close(),
  };
}

function translated({ code, message, failure }: ThreadError, limitMs: number): Error {
  if (failure?.name === 'FilterError') return new FilterError(failure.message, String(failure.path));
  if (failure) return new Error(`The action could not be compiled: ${failure.name}: ${message}`);
  if (code === 'busy') {
    return new ActionCompilerBusyError('Too many actions are being read at the moment. Try again.');
  }
  if (code === 'timeout') {
    const seconds = limitMs / 1000;
    return new FilterError(
      `The steps take too long to read: at most ${seconds} seconds are allowed. Make them simpler.`,
      'steps',
    );
  }
  return new Error(`The thread that compiles actions ended: ${message}`);
}
