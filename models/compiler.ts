import { type Failure, ThreadError, ThreadPool } from '../hog/threads/pool.ts';
import { ModelError, type ModelQuery } from './model-query.ts';
import type { ModelOptions } from './models.ts';

export interface CompilerOptions {
  threads?: number;
  /** How long one query may take. After that, its thread is ended. */
  timeoutMs?: number;
  maxWaiting?: number;
  /** The most queries of one project that wait. */
  maxWaitingOfOne?: number;
}

/** Compiles the settings of exports to queries, in threads of its own: users decide what that costs. */
export interface ModelCompiler {
  /**
   * Builds the query as `modelQuery` does. Throws a ModelError, a CompilerBusyError, or the reason of the signal when it
   * is aborted.
   */
  query(options: ModelOptions, signal?: AbortSignal): Promise<ModelQuery>;
  close(): Promise<void>;
}

/** Returns a compiler whose work stops with the signal. */
export const stoppable = (compiler: ModelCompiler, signal: AbortSignal): ModelCompiler => ({
  query: (options) => compiler.query(options, signal),
  close: () => compiler.close(),
});

export const COMPILER_DEFAULTS = {
  // One more than needed: one project never has all threads.
  threads: 2,
  timeoutMs: 5_000,
  maxWaiting: 200,
  maxWaitingOfOne: 20,
} satisfies Required<CompilerOptions>;

/** A query was not compiled, but may be later: too many are waiting, or it took too long. */
export class CompilerBusyError extends Error {
  override readonly name = 'CompilerBusyError';
  /** The field that takes too long. Null if others were the reason. */
  readonly slow: ModelError['field'] | null;

  constructor(message: string, slow: ModelError['field'] | null = null) {
    super(message);
    this.slow = slow;
  }
}

export function createCompiler(options: CompilerOptions = {}): ModelCompiler {
  const { timeoutMs, ...settings } = { ...COMPILER_DEFAULTS, ...options };
  const pool = new ThreadPool<ModelOptions, ModelQuery>({
    entry: new URL('./thread.ts', import.meta.url),
    ...settings,
  });
  return {
    query: (one, signal) =>
      pool
        .run(one, { limitMs: timeoutMs, usedMs: 0 }, String(one.projectId), signal)
        .catch((error: unknown) => {
          throw error instanceof ThreadError ? translated(error, one, timeoutMs) : error;
        }),
    close: () => pool.close(),
  };
}

function translated(
  { code, message, failure }: ThreadError,
  { hogqlQuery }: ModelOptions,
  limitMs: number,
): Error {
  if (failure) return thrown(failure);
  if (code === 'busy')
    return new CompilerBusyError('Too many queries are being read at the moment. Try again.');
  if (code === 'timeout') {
    const seconds = limitMs / 1000;
    return new CompilerBusyError(
      `The filters and columns take too long to read: at most ${seconds} seconds are allowed. Make them simpler.`,
      hogqlQuery ? 'hogql_query' : 'filters',
    );
  }
  return new Error(`The thread that compiles queries ended: ${message}`);
}

/** Restores an error of a thread. */
function thrown({ name, message, field, detail }: Failure): Error {
  if (name === 'ModelError') {
    return new ModelError(field as ModelError['field'], message, (detail as string | null) ?? null);
  }
  return new Error(`The query could not be compiled: ${name}: ${message}`);
}
