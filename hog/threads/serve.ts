import { parentPort } from 'node:worker_threads';
import type { Failure, ThreadAnswer, ThreadRequest } from './pool.ts';

export interface Service<Job, Answer> {
  work(job: Job): Promise<Answer> | Answer;
  /** Returns whether the thread should be replaced after the job. */
  isWorn?(error?: unknown): boolean;
}

/** Answers the jobs of a pool. Called once by the module that a thread runs. A thread has no time limit of its own. */
export function serveThread<Job, Answer>({ work, isWorn }: Service<Job, Answer>): void {
  parentPort?.on('message', async ({ id, job }: ThreadRequest<Job>) => {
    let sent: ThreadAnswer<Answer>;
    try {
      const answer = await work(job);
      sent = { id, answer, worn: isWorn?.() ?? false };
    } catch (error) {
      sent = { id, failure: failureOf(error), worn: isWorn?.(error) ?? false };
    }
    parentPort?.postMessage(sent);
  });
}

/** Returns the fields of an error that can be sent to another thread. */
function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) };
  const fields = Object.entries(error).filter(([, value]) => typeof value !== 'function');
  return { ...Object.fromEntries(fields), name: error.name, message: error.message };
}
