import { type Pool, transaction } from '../../db/pool.ts';
import type { VersionBounds } from '../../db/versions.ts';
import type { Work } from '../../tenancy/product.ts';
import { keepVersions } from '../../tenancy/versions.ts';
import {
  FUNCTION_VERSIONS,
  forgetFunction,
  oldDeletedFunctions,
  projectsWithDeletions,
} from '../rows/forgetting.ts';
import { deleteForgotten } from '../rows/forgotten-persons.ts';
import { deleteLosses } from '../rows/losses.ts';
import { deleteEndedMasks } from '../rows/masks.ts';
import { deleteReplays } from '../rows/replays.ts';
import {
  deleteCounts,
  deleteLogs,
  dropHistory,
  ensureHistoryPartitions,
  hastenCancelled,
} from '../rows/upkeep.ts';
import { MOST_REVISIONS } from '../rules/limits.ts';

export interface UpkeepDependencies {
  pool: Pool;
  /** Days after which ended invocations and logs are deleted. */
  functionDays: number;
}

const WEEKS_AHEAD = 2;
/** How many days counts are kept. */
const COUNT_DAYS = 90;
const DAY = 86_400_000;
const AT_ONCE = 5_000;
const MOST = 200_000;

/** Repeats a step until it finds less than it takes at once. */
async function inBatches(step: () => Promise<number>, { signal, beat }: Work): Promise<number> {
  let done = 0;
  while (done < MOST) {
    signal.throwIfAborted();
    const count = await step();
    beat();
    done += count;
    if (count < AT_ONCE) break;
  }
  return done;
}

/** Makes room for the history ahead, and deletes what is older than it is kept. */
export async function keepHistory({ pool, functionDays }: UpkeepDependencies, work: Work): Promise<number> {
  const now = new Date();
  const ago = (days: number) => new Date(now.getTime() - days * DAY);
  await ensureHistoryPartitions(pool, now, WEEKS_AHEAD);
  work.beat();
  let deleted = await dropHistory(pool, ago(functionDays));
  work.beat();
  deleted += await inBatches(() => deleteLogs(pool, ago(functionDays), AT_ONCE), work);
  deleted += await inBatches(() => deleteCounts(pool, ago(COUNT_DAYS), AT_ONCE), work);
  deleted += await inBatches(() => deleteReplays(pool, ago(functionDays), AT_ONCE), work);
  deleted += await deleteLosses(pool, ago(functionDays));
  deleted += await inBatches(() => deleteEndedMasks(pool, AT_ONCE), work);
  deleted += await inBatches(() => deleteForgotten(pool, AT_ONCE), work);
  return deleted;
}

/** Has invocations cancelled that wait for a function that was switched off or deleted. */
export const cancelWaiting = ({ pool }: UpkeepDependencies, work: Work): Promise<number> =>
  inBatches(() => hastenCancelled(pool, AT_ONCE), work);

/** How many deleted functions of a project are forgotten in one round. */
const FORGOTTEN_AT_ONCE = 500;

/** Forgets functions that were deleted long ago, and versions of those that have too many bytes of them. */
export async function keepFunctionVersions(pool: Pool, bounds: VersionBounds, work: Work): Promise<number> {
  const now = new Date();
  let done = 0;
  for (const projectId of await projectsWithDeletions(pool, now)) {
    for (const id of await oldDeletedFunctions(pool, projectId, { ...bounds, limit: FORGOTTEN_AT_ONCE })) {
      work.signal.throwIfAborted();
      work.beat();
      if (await transaction(pool, (client) => forgetFunction(client, projectId, id))) done += 1;
    }
  }
  // The newest versions of each are all that there are.
  const kept = { ...FUNCTION_VERSIONS, forget: async () => undefined };
  return done + (await keepVersions(pool, kept, { ...bounds, newest: MOST_REVISIONS }, work, now));
}
