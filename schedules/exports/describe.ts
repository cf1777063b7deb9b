import { type ScheduleDescription, type ScheduleHandle, ScheduleNotFoundError } from '@temporalio/client';

/** Describes a schedule. Undefined: there is none. */
export async function describeSchedule(handle: ScheduleHandle): Promise<ScheduleDescription | undefined> {
  try {
    return await handle.describe();
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    return undefined;
  }
}
