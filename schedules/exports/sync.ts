import { type Client, ScheduleAlreadyRunning, ScheduleNotFoundError } from '@temporalio/client';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { isOnce } from '../../exports/rules/once.ts';
import { noteOf, sameSchedule, scheduleOf } from './export-schedule.ts';

const ATTEMPTS = 5;

/** Removes a schedule. False: there was none. */
export async function removeSchedule(client: Client, exportId: string): Promise<boolean> {
  try {
    await client.schedule.getHandle(exportId).delete();
    return true;
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    return false;
  }
}

/**
 * Makes a schedule agree with its row. False: there was nothing to do.
 *
 * An update makes the server forget missed intervals that it was about to start. So a schedule that is right is not
 * touched, and one that differs only in being paused is paused or unpaused, not updated.
 */
export async function syncSchedule(client: Client, row: BatchExportRow, taskQueue: string): Promise<boolean> {
  if (row.deleted_at !== null || isOnce(row)) return removeSchedule(client, row.id);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await syncOnce(client, row, taskQueue);
    } catch (error) {
      // Between two calls, somebody created the schedule, or the server removed it after its last action.
      const moved = error instanceof ScheduleAlreadyRunning || error instanceof ScheduleNotFoundError;
      if (!moved || attempt >= ATTEMPTS) throw error;
    }
  }
}

async function syncOnce(client: Client, row: BatchExportRow, taskQueue: string): Promise<boolean> {
  const wanted = scheduleOf(row, taskQueue, Date.now());
  const state = { paused: row.paused, note: noteOf(row) };
  const handle = client.schedule.getHandle(row.id);
  const found = await handle.describe().catch((error) => {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    return undefined;
  });
  if (!found) {
    await client.schedule.create({ scheduleId: row.id, ...wanted, state });
    return true;
  }
  if (!sameSchedule(wanted, found)) {
    await handle.update(() => ({ ...wanted, state }));
    return true;
  }
  if (found.state.paused === row.paused) return false;
  if (row.paused) await handle.pause(state.note);
  else await handle.unpause(state.note);
  return true;
}
