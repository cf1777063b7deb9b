import { type Client, type Connection, ScheduleNotFoundError } from '@temporalio/client';
import { MAX_JITTER } from '../../intervals/index.ts';

/** Whole seconds of a time, as Temporal's API takes them. */
const seconds = (at: number) => ({ seconds: Math.floor(at / 1000) as never });

/**
 * Answers whether a schedule may have fired at a time, in milliseconds, by itself. A schedule that is gone, or that changed
 * since, may have fired at any time.
 */
export async function mayHaveFired(
  client: Client,
  namespace: string,
  scheduleId: string,
  at: number,
): Promise<boolean> {
  try {
    const { info } = await client.schedule.getHandle(scheduleId).describe();
    if ((info.lastUpdatedAt ?? info.createdAt).getTime() >= at) return true;
    const { startTime } = await (client.connection as Connection).workflowService.listScheduleMatchingTimes({
      ...{ namespace, scheduleId },
      // The server adds the delay of each firing.
      ...{ startTime: seconds(at - 1_000), endTime: seconds(at + MAX_JITTER + 1_000) },
    });
    return startTime.length > 0;
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    return true;
  }
}
