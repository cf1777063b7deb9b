import os from 'node:os';
import { isMainThread, parentPort } from 'node:worker_threads';
import type { Failure, Ready, ThreadAnswer, ThreadRequest } from './pool.ts';
import { ownThread } from './processor-time.ts';

export interface Service<Job, Answer> {
  work(job: Job): Promise<Answer> | Answer;
  /** Returns whether the thread should be replaced after the job. */
  isWorn?(error?: unknown): boolean;
  /** Returns the memory of an answer that moves to the main thread instead of being copied. */
  transfer?(answer: Answer): ArrayBuffer[];
}

/** So much lower is the priority of threads, which may be busy for seconds, than that of the thread that serves requests. */
const NICE = 10;

/** Answers the jobs of a pool. Called once by the module that a thread runs. A thread has no time limit of its own. */
export function serveThread<Job, Answer>({ work, isWorn, transfer }: Service<Job, Answer>): void {
  // On Linux a priority belongs to the thread. Elsewhere it would be that of the whole process.
  if (!isMainThread && process.platform === 'linux') os.setPriority(NICE);
  const ready: Ready = { thread: ownThread() };
  parentPort?.postMessage(ready);
  parentPort?.on('message', async ({ id, job }: ThreadRequest<Job>) => {
    let sent: ThreadAnswer<Answer>;
    let moved: ArrayBuffer[] = [];
    try {
      const answer = await work(job);
      sent = { id, answer, worn: isWorn?.() ?? false };
      moved = transfer?.(answer) ?? [];
    } catch (error) {
      sent = { id, failure: failureOf(error), worn: isWorn?.(error) ?? false };
    }
    try {
      parentPort?.postMessage(sent, moved);
    } catch (error) {
      // The thread would end, and take its next jobs with it.
      parentPort?.postMessage({ id, unsent: failureOf(error).message, worn: sent.worn ?? false });
    }
  });
}

/** Returns the fields of an error that can be sent to another thread. */
function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) };
  const fields = Object.entries(error).filter(([, value]) => typeof value !== 'function');
  return { ...Object.fromEntries(fields), name: error.name, message: error.message };
}
