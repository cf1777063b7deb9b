import { type Failure, ThreadError, ThreadPool } from '../hog/threads/pool.ts';
import { refuse } from '../refusals.ts';
import {
  type CompiledFile,
  type CompiledQuery,
  type FileForm,
  QueryError,
  type QueryJob,
} from './rules/request.ts';

/** Compiles queries in threads of its own: users decide what that costs. */
export interface QueryCompiler {
  /** Throws a QueryError, a Refusal if others take all the time, or the reason of the signal when it is aborted. */
  compile(job: Omit<QueryJob, 'form'>, signal?: AbortSignal): Promise<CompiledQuery>;
  /** The same for a query whose rows are written to a file. */
  compileFile(job: Omit<QueryJob, 'form'>, form: FileForm, signal?: AbortSignal): Promise<CompiledFile>;
  close(): Promise<void>;
}

export interface QueryCompilerOptions {
  threads?: number;
  /** How long one query may take. After that, its thread is ended. */
  timeoutMs?: number;
}

const MOST_WAITING = 200;
const MOST_WAITING_OF_ONE = 20;
const RETRY_SECONDS = 5;

export function createQueryCompiler({
  threads = 2,
  timeoutMs = 5_000,
}: QueryCompilerOptions = {}): QueryCompiler {
  const pool = new ThreadPool<QueryJob, CompiledQuery | CompiledFile>({
    entry: new URL('./thread.ts', import.meta.url),
    threads,
    maxWaiting: MOST_WAITING,
    maxWaitingOfOne: MOST_WAITING_OF_ONE,
  });
  const run = (job: QueryJob, signal: AbortSignal | undefined) =>
    pool
      .run(job, { limitMs: timeoutMs, usedMs: 0 }, String(job.projectId), signal)
      .catch((error: unknown) => {
        throw error instanceof ThreadError ? translated(error, timeoutMs) : error;
      });
  return {
    compile: async (job, signal) => (await run({ ...job, form: 'answer' }, signal)) as CompiledQuery,
    compileFile: async (job, form, signal) => (await run({ ...job, form }, signal)) as CompiledFile,
    close: () => pool.close(),
  };
}

function translated({ code, message, failure }: ThreadError, limitMs: number): Error {
  if (failure) return thrown(failure);
  if (code === 'busy') {
    return refuse.crowded('Too many queries are being read at the moment. Try again.', RETRY_SECONDS);
  }
  if (code === 'timeout' || code === 'lost') {
    return new QueryError(
      'query',
      `The query takes too long to read: at most ${limitMs / 1000} seconds are allowed. Make it simpler.`,
    );
  }
  return new Error(`The thread that compiles queries ended: ${message}`);
}

/** Restores an error of a thread. */
function thrown({ name, message, field, excerpt, code }: Failure): Error {
  if (name === 'QueryError')
    return new QueryError(String(field), message, (excerpt as string | null) ?? null);
  if (name === 'SourceError' && code === 'busy') return refuse.crowded(message, RETRY_SECONDS);
  return new Error(`The query could not be compiled: ${name}: ${message}`);
}
