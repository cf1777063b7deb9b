import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from '../../db/pool.ts';

const EVERY = 500;

/** What was seen of places and of dead runs during a window. */
export interface Seen {
  /** The most places of each lane that dead exports had at once, those that are kept for them included. */
  mostPlaces: Record<string, { dead: number; all: number; places: number }>;
  /** The most seconds that a healthy run or verification stood in the queue for a place. */
  longestHealthyWaitSeconds: number;
  /** The most seconds that an open dead run neither stood in the queue nor said what is wrong. */
  longestMuteSeconds: number;
  /** How many dead runs were open at the end: all, those that say what is wrong, those that wait for a place. */
  open: { runs: number; say: number; wait: number };
}

/** Looks at the places and the runs until it is stopped. */
export function watchPlaces(pool: Pool, dead: readonly string[]): { stop(): Promise<Seen> } {
  const stopped = new AbortController();
  const seen: Seen = {
    mostPlaces: {},
    longestHealthyWaitSeconds: 0,
    longestMuteSeconds: 0,
    open: { runs: 0, say: 0, wait: 0 },
  };
  const muteSince = new Map<string, number>();

  async function look(): Promise<void> {
    const { rows: lanes } = await pool.query(
      `select lane, count(*)::int as all, count(*) filter (where batch_export_id = any($1))::int as dead,
         (select sum(places)::int from batch_export_workers w where w.lane = p.lane) as places
       from batch_export_places p where leased_until is not null group by lane`,
      [dead],
    );
    for (const { lane, ...now } of lanes) {
      const most = seen.mostPlaces[lane] ?? { dead: 0, all: 0, places: 0 };
      seen.mostPlaces[lane] = {
        dead: Math.max(most.dead, now.dead),
        all: Math.max(most.all, now.all),
        places: now.places,
      };
    }
    const { rows: waits } = await pool.query(
      `select coalesce(extract(epoch from clock_timestamp() - min(waiting_since)), 0)::float8 as seconds
       from batch_export_places where batch_export_id <> all($1)`,
      [dead],
    );
    seen.longestHealthyWaitSeconds = Math.max(seen.longestHealthyWaitSeconds, waits[0].seconds);
    const { rows: runs } = await pool.query(
      `select r.id, r.latest_error is not null as says, p.waiting_since is not null as waits
       from batch_export_runs r left join batch_export_places p using (project_id, id)
       where r.batch_export_id = any($1) and r.status in ('Starting', 'Running')`,
      [dead],
    );
    const now = performance.now();
    const mute = new Set<string>();
    for (const { id, says, waits } of runs) {
      if (says || waits) continue;
      mute.add(id);
      const since = muteSince.get(id) ?? now;
      muteSince.set(id, since);
      seen.longestMuteSeconds = Math.max(seen.longestMuteSeconds, (now - since) / 1000);
    }
    for (const id of muteSince.keys()) if (!mute.has(id)) muteSince.delete(id);
    const count = (name: 'says' | 'waits') => runs.filter((run) => run[name]).length;
    seen.open = { runs: runs.length, say: count('says'), wait: count('waits') };
  }
  const looking = (async () => {
    while (!stopped.signal.aborted) {
      await look();
      await pause(EVERY, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  })();
  return {
    async stop() {
      stopped.abort();
      await looking;
      return seen;
    },
  };
}
