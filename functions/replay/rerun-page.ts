import type { ReplayRow } from '../rows/replays.ts';
import { nextEnded, repeatInvocations } from '../rows/reruns.ts';
import type { FoundPage, PageDependencies } from './event-page.ts';

/** How many ended invocations a page looks at. */
const PAGE = 1_000;

/** Finds the next ended invocations that are to run again, up to so many. Null: there are no more. */
export async function rerunPage(
  { pool }: Pick<PageDependencies, 'pool'>,
  row: ReplayRow,
  { most }: { most: number },
): Promise<FoundPage | null> {
  const { ended, last: lastOfAll } = await nextEnded(pool, row, PAGE);
  const ids: string[] = [];
  let scanned = 0;
  for (const { id, wanted } of ended) {
    // What comes later waits for the next page, and the rate for its time.
    if (!row.dry_run && ids.length >= most) break;
    if (wanted) ids.push(id);
    scanned += 1;
  }
  const last = scanned < ended.length ? ended[scanned - 1] : (lastOfAll ?? ended.at(-1));
  if (!last) return null;
  return {
    done: {
      ...{ scanned, matched: ids.length, masked: 0, queued: ids.length, filterErrors: 0 },
      ...{ lastTimestamp: last.finished_at, lastId: last.id },
    },
    async write(client) {
      if (row.dry_run) return ids.length;
      const key = { projectId: row.project_id, functionId: row.function_id };
      return repeatInvocations(client, key, { ids, statuses: null, window: null, version: row.version });
    },
  };
}
