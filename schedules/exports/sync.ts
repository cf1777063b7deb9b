import { type Client, ScheduleAlreadyRunning, ScheduleNotFoundError } from '@temporalio/client';
import type { BatchExportRow } from '../../db/batch-exports.ts';
import { noteOf, sameSchedule, scheduleOf } from './export-schedule.ts';

const ATTEMPTS = 5;

export async function removeSchedule(client: Client, exportId: string): Promise<void> {
  try {
    await client.schedule.getHandle(exportId).delete();
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
  }
}

/**
 * Makes a schedule what its row says. An update makes the server forget what it was about to catch up with, so one that
 * is right is left alone, and one that is only paused, or only not paused, is not updated for it.
 */
export async function syncSchedule(client: Client, row: BatchExportRow, taskQueue: string): Promise<void> {
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

async function syncOnce(client: Client, row: BatchExportRow, taskQueue: string): Promise<void> {
  const wanted = scheduleOf(row, taskQueue, Date.now());
  const state = { paused: row.paused, note: noteOf(row) };
  const handle = client.schedule.getHandle(row.id);
  const found = await handle.describe().catch((error) => {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    return undefined;
  });
  if (!found) {
    await client.schedule.create({ scheduleId: row.id, ...wanted, state });
    return;
  }
  if (!sameSchedule(wanted, found)) {
    await handle.update(() => ({ ...wanted, state }));
    return;
  }
  if (found.state.paused === row.paused) return;
  if (row.paused) await handle.pause(state.note);
  else await handle.unpause(state.note);
}
