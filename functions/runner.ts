import { ThreadError, ThreadPool } from '../hog/threads/pool.ts';
import type { MaskJob, Match, MatchJob } from './evaluate.ts';
import type { MaskKey } from './rules/masking.ts';
import type { Scanned } from './rules/tally.ts';
import type {
  BeginJob,
  Begun,
  ItemStep,
  ResumeJob,
  RunAnswer,
  RunJob,
  Step,
  StepItem,
  StepsJob,
} from './run.ts';
import type { ScanJob } from './scan.ts';

export interface RunnerOptions {
  threads?: number;
  /** How long one step may take, whatever the machine counts. After that, its thread is ended. */
  timeoutMs?: number;
  maxWaiting?: number;
  /** The most steps of one project that wait. */
  maxWaitingOfOne?: number;
  /** The file with the locations of addresses, for transformations. */
  geoip?: string | undefined;
}

/** Runs filters and programs in threads of its own: users decide what they do. */
export interface Runner {
  match(projectId: number, job: Omit<MatchJob, 'kind'>, signal?: AbortSignal): Promise<Match[]>;
  begin(projectId: number, job: Omit<BeginJob, 'kind'>, signal?: AbortSignal): Promise<Begun>;
  resume(projectId: number, job: Omit<ResumeJob, 'kind'>, signal?: AbortSignal): Promise<Step>;
  mask(projectId: number, job: Omit<MaskJob, 'kind'>, signal?: AbortSignal): Promise<MaskKey>;
  /** Answers for the first of the events, at least for one. */
  scan(projectId: number, job: Omit<ScanJob, 'kind'>, signal?: AbortSignal): Promise<Scanned[][]>;
  /**
   * Runs a step of each of the first items, at least of one. Items that other items of the same job could harm are run again
   * alone.
   */
  steps(projectId: number, job: Omit<StepsJob, 'kind'>): Promise<(ItemStep | NoStep)[]>;
  close(): Promise<void>;
}

export const RUNNER_DEFAULTS = {
  // One more than needed: one project never has all threads.
  threads: 2,
  // The time of the processor is limited to much less. A full machine may let a thread wait for many seconds.
  timeoutMs: 30_000,
  maxWaiting: 200,
  maxWaitingOfOne: 20,
} satisfies Required<Omit<RunnerOptions, 'geoip'>>;

/** A step was not done, but may be later: too many are waiting. */
export class RunnerBusyError extends Error {
  override readonly name = 'RunnerBusyError';
}

/** A step was not run, or was ended from outside, and would be again: it takes too much time or memory, or nests too deep. */
export class RunnerLimitError extends Error {
  override readonly name = 'RunnerLimitError';
  /** The time that it had. */
  readonly milliseconds: number;

  constructor(message: string, milliseconds: number) {
    super(message);
    this.milliseconds = milliseconds;
  }
}

/** A step came to nothing by a fault of the runner, and would again. */
export class RunnerFaultError extends Error {
  override readonly name = 'RunnerFaultError';
}

/** Why an item has no step. It would have none the next time either. */
export type NoStep = RunnerLimitError | RunnerFaultError;
export const isNoStep = (error: unknown): error is NoStep =>
  error instanceof RunnerLimitError || error instanceof RunnerFaultError;

export function createRunner(options: RunnerOptions = {}): Runner {
  const { timeoutMs, geoip, ...settings } = { geoip: undefined, ...RUNNER_DEFAULTS, ...options };
  const pool = new ThreadPool<RunJob, RunAnswer>({
    entry: new URL('./run-thread.ts', import.meta.url),
    ...settings,
  });
  const run = <T>(projectId: number, job: RunJob, signal?: AbortSignal) =>
    pool.run(job, { limitMs: timeoutMs, usedMs: 0 }, String(projectId), signal).catch((error: unknown) => {
      throw error instanceof ThreadError ? translated(error, timeoutMs) : error;
    }) as Promise<T>;
  return {
    match: (projectId, job, signal) => run(projectId, { kind: 'match', ...job }, signal),
    begin: (projectId, job, signal) => run(projectId, { kind: 'begin', ...job, geoip }, signal),
    resume: (projectId, job, signal) => run(projectId, { kind: 'resume', ...job }, signal),
    mask: (projectId, job, signal) => run(projectId, { kind: 'mask', ...job }, signal),
    scan: (projectId, job, signal) => run(projectId, { kind: 'scan', ...job }, signal),
    async steps(projectId, job) {
      const attempt = (items: readonly StepItem[]) =>
        run<ItemStep[]>(projectId, { kind: 'steps', ...job, items });
      const alone = (item: StepItem) =>
        attempt([item]).then(
          ([step]) => step as ItemStep,
          (error: unknown) => {
            if (isNoStep(error)) return error;
            throw error;
          },
        );
      if (job.items.length === 1) return [await alone(job.items[0] as StepItem)];
      try {
        return await attempt(job.items);
      } catch (error) {
        if (!isNoStep(error)) throw error;
        // It was one of them. Programs only compute, so nothing happens twice.
        const steps: (ItemStep | NoStep)[] = [];
        for (const item of job.items) steps.push(await alone(item));
        return steps;
      }
    },
    close: () => pool.close(),
  };
}

/** What a step works with cannot be sent to a thread, or what it came to cannot be sent back. */
const UNSENT = 'The function works with values that nest too deep.';

function translated({ code, message, failure }: ThreadError, limitMs: number): Error {
  if (failure) return new RunnerFaultError(`The function could not be run: ${failure.name}: ${message}`);
  if (code === 'unsent') return new RunnerLimitError(UNSENT, 0);
  if (code === 'busy')
    return new RunnerBusyError('Too many functions are being tried at the moment. Try again.');
  return new RunnerLimitError(
    code === 'timeout'
      ? `The function took longer than ${limitMs / 1000} seconds and was ended.`
      : 'The function took too much memory and was ended.',
    limitMs,
  );
}
