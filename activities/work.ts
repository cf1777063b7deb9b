import { Context } from '@temporalio/activity';
import type { WorkAttempt } from '../exports/runs/work.ts';
import { translated } from './failures.ts';

/** Shows an activity to the products: as an attempt at work, without Temporal. */
export const workOf = (context: Context): WorkAttempt => ({
  signal: context.cancellationSignal,
  beat: (details) => context.heartbeat(details),
  number: context.info.attempt,
  isOutOfTime: () => context.cancellationDetails?.timedOut === true,
});

/** Does work of a product as the activity that is under way. Its errors become failures that Temporal understands. */
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
