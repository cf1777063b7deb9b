import { isCancellation, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import type { NoticeInput } from '../exports/temporal.ts';
import type { FunctionNotice } from '../functions/temporal.ts';

const { sendNotice, sendFunctionNotice } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  scheduleToCloseTimeout: '1 day',
  retry: { initialInterval: '2 seconds', backoffCoefficient: 2, maximumInterval: '10 minutes' },
});

/** Sends a notice to the webhook of the operators, and retries for a day. Returns whether it was sent. */
export async function notice(input: NoticeInput | FunctionNotice): Promise<boolean> {
  try {
    await ('functionId' in input ? sendFunctionNotice(input) : sendNotice(input));
    return true;
  } catch (error) {
    if (isCancellation(error)) throw error;
    return false;
  }
}
