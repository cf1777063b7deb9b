import { SourceError } from '../errors.ts';
import { ThreadError, ThreadPool } from '../threads/pool.ts';
import { type Engine, type ParseJob, ParserTrap, type WasmEngine } from './engine.ts';

export interface PoolOptions {
  workers: number;
  maxWaiting: number;
}

/** Parses in threads of its own. */
export function threadedEngine({ workers, maxWaiting }: PoolOptions): Engine {
  const pool = new ThreadPool<ParseJob, string[]>({
    entry: new URL('./thread.ts', import.meta.url),
    threads: workers,
    maxWaiting,
  });
  return {
    lanes: workers,
    parse: (kind, sources, budget) =>
      pool.run({ kind, sources }, budget).catch((error: unknown) => {
        throw error instanceof ThreadError ? sourceError(error, budget.limitMs) : error;
      }),
    close: () => pool.close(),
  };
}

/** Parses in the thread of the caller, which must itself be one that a pool can end. */
export function ownEngine(engine: WasmEngine): Engine {
  return {
    lanes: 1,
    async parse(kind, sources) {
      try {
        return engine.parse({ kind, sources });
      } catch (error) {
        throw error instanceof ParserTrap ? tooComplex() : error;
      }
    },
    close: async () => undefined,
  };
}

const tooComplex = (reason = '') =>
  new SourceError('too_deep', `The source is too complex for the parser${reason}`);

function sourceError({ code, message }: ThreadError, limitMs: number): SourceError {
  if (code === 'timeout') {
    return new SourceError('timeout', `The source could not be parsed within ${limitMs / 1000} seconds`);
  }
  if (code === 'busy') return new SourceError('busy', message);
  return tooComplex(code === 'lost' ? `: ${message}` : '');
}
