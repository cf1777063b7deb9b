import { ThreadError, ThreadPool } from '../../hog/threads/pool.ts';
import type { TrialGroup, TrialJob } from './trial.ts';

/** Tries drafts of flags in threads of their own: users decide what that costs. */
export interface Trials {
  /** Tries a draft for some persons. Throws a TrialLimitError, a TrialBusyError, or the reason of the signal. */
  run(projectId: number, job: TrialJob, signal?: AbortSignal): Promise<TrialGroup[]>;
  close(): Promise<void>;
}

/** Too many drafts are tried at the moment. */
export class TrialBusyError extends Error {
  override readonly name = 'TrialBusyError';
}

/** The conditions take too long for these persons, or too much memory. */
export class TrialLimitError extends Error {
  override readonly name = 'TrialLimitError';
}

const DEFAULTS = { threads: 2, timeoutMs: 5_000, maxWaiting: 20, maxWaitingOfOne: 5 };

export function createTrials(options: Partial<typeof DEFAULTS> = {}): Trials {
  const { timeoutMs, ...settings } = { ...DEFAULTS, ...options };
  const pool = new ThreadPool<TrialJob, TrialGroup[]>({
    entry: new URL('./thread.ts', import.meta.url),
    ...settings,
  });
  return {
    run: (projectId, job, signal) =>
      pool.run(job, { limitMs: timeoutMs, usedMs: 0 }, String(projectId), signal).catch((error: unknown) => {
        if (!(error instanceof ThreadError) || error.code === 'failed') throw error;
        if (error.code === 'busy')
          throw new TrialBusyError('Too many drafts are tried at the moment. Try again.');
        throw new TrialLimitError(
          `The conditions take more than ${timeoutMs / 1_000} seconds, or too much memory, for ${job.persons.length} persons. Make them simpler.`,
        );
      }),
    close: () => pool.close(),
  };
}
