import { Context } from '@temporalio/activity';

const EVERY = 10_000;

/** Does it, and lets Temporal know meanwhile that somebody still works on it. */
export async function whileBeating<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  const beating = setInterval(() => context.heartbeat(), EVERY);
  try {
    return await work();
  } finally {
    clearInterval(beating);
  }
}
