import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  ScheduleNotFoundError,
} from '@temporalio/client';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { cadenceOfRow } from '../../exports/rules/cadence.ts';
import { isOnce } from '../../exports/rules/once.ts';
import { describeSchedule } from './describe.ts';
import { noteOf, sameSchedule, scheduleOf, type Wanted } from './export-schedule.ts';
import { differenceIn } from './firings.ts';
import { readMark, schedulesWithClocks } from './zone-data.ts';

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
 * Makes a schedule agree with its row. False: there was nothing to do. `tell` hears how the firing times of a schedule that is
 * right differ from the ends of the intervals, and that they do not.
 *
 * An update makes the server forget missed intervals that it was about to start. So a schedule that is right is not
 * touched, and one that differs only in being paused is paused or unpaused, not updated.
 */
export async function syncSchedule(
  client: Client,
  row: BatchExportRow,
  taskQueue: string,
  tell: (difference: string | undefined) => void = () => undefined,
): Promise<boolean> {
  if (row.deleted_at !== null || isOnce(row)) return removeSchedule(client, row.id);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await syncOnce(client, row, taskQueue, tell);
    } catch (error) {
      // Between two calls, somebody created the schedule, or the server removed it after its last action.
      const moved = error instanceof ScheduleAlreadyRunning || error instanceof ScheduleNotFoundError;
      if (!moved || attempt >= ATTEMPTS) throw error;
    }
  }
}

async function syncOnce(
  client: Client,
  row: BatchExportRow,
  taskQueue: string,
  tell: (difference: string | undefined) => void,
): Promise<boolean> {
  const { zoneData, mark, ...wanted } = scheduleOf(row, taskQueue, Date.now());
  const state = { paused: row.paused, note: noteOf(row) };
  const schedules = schedulesWithClocks(client, zoneData);
  const handle = schedules.getHandle(row.id);
  const found = await describeSchedule(handle);
  if (!found) {
    await schedules.create({ scheduleId: row.id, ...wanted, state });
    return true;
  }
  if (!sameSchedule({ ...wanted, zoneData, mark }, found)) {
    await handle.update(() => ({ ...wanted, state }));
    return true;
  }
  tell(differenceOf(row, mark, found));
  if (found.state.paused === row.paused) return false;
  if (row.paused) await handle.pause(state.note);
  else await handle.unpause(state.note);
  return true;
}

function differenceOf(
  row: BatchExportRow,
  mark: Wanted['mark'],
  found: ScheduleDescription,
): string | undefined {
  if (row.interval !== 'day' && row.interval !== 'week') return undefined;
  // Clocks of newer zone data are right, and ours are not.
  if (readMark(found.spec)?.sum !== mark?.sum) return undefined;
  // The schedule knows nothing of the seam.
  return differenceIn(cadenceOfRow({ ...row, seam_at: null }), found);
}
