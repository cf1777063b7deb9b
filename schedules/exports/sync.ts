import { type Client, ScheduleAlreadyRunning, ScheduleNotFoundError } from '@temporalio/client';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { noteOf, sameSchedule, scheduleOf } from './export-schedule.ts';

const ATTEMPTS = 5;

/** False: there was none. */
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
 * Makes a schedule what its row says. An update makes the server forget what it was about to catch up with, so one that
 * is right is left alone, and one that is only paused, or only not paused, is not updated for it. False: there was nothing to do.
 */
export async function syncSchedule(client: Client, row: BatchExportRow, taskQueue: string): Promise<boolean> {
  if (row.deleted_at !== null) return removeSchedule(client, row.id);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await syncOnce(client, row, taskQueue);
    } catch (error) {
      // Made, or removed by the server after its last action, between two calls.
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
