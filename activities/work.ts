import { Context } from '@temporalio/activity';
import type { WorkAttempt } from '../exports/runs/work.ts';
import { translated } from './failures.ts';

/** Presents an activity to the products as an attempt at work, so that they need no Temporal. */
export const workOf = (context: Context): WorkAttempt => ({
  signal: context.cancellationSignal,
  beat: (details) => context.heartbeat(details),
  number: context.info.attempt,
  isOutOfTime: () => context.cancellationDetails?.timedOut === true,
});

/** Does work of a product in the current activity, and translates its errors for Temporal. */
export async function inActivity<T>(
  work: (attempt: WorkAttempt, context: Context) => Promise<T>,
): Promise<T> {
  const context = Context.current();
  try {
    return await work(workOf(context), context);
  } catch (error) {
    throw translated(error, context);
  }
}
