import { randomInt } from 'node:crypto';
import type { Pool, Queryable, Transaction } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { cleanText } from '../../values/texts.ts';
import { knownOf } from '../dispatch/definitions.ts';
import type { FilterError, MatchedEvent } from '../dispatch/match.ts';
import { addLogs } from '../rows/logs.ts';
import { enqueue, type NewInvocation } from '../rows/queue.ts';
import { reactingFunction } from '../rows/reacting.ts';
import { keepReplayMasks, type MaskWindow, replayMasks } from '../rows/replay-masks.ts';
import { type DonePage, nextReplayEvents, type ReplayRow } from '../rows/replays.ts';
import { LONGEST_WINDOW, Masking, type MaskingRule } from '../rules/masking.ts';
import type { ReplayMatcher } from './matcher.ts';

export interface PageDependencies {
  pool: Pool;
  matcher: ReplayMatcher;
  /** The address under which users see Sluice. */
  site: string;
}

/** What is found out about a page before anything is written. */
export interface FoundPage {
  done: DonePage;
  /** Writes what the page leads to. Returns how many invocations that are: `done` says how many were found. */
  write(client: Transaction): Promise<number>;
}

/** How many events a page has. */
const PAGE = 1_000;
/** How many errors of filters a page writes to the log. The others are only counted. */
const MOST_ERRORS = 5;

/**
 * Finds out for which of the next events the function runs, up to so many invocations. Null: there are no more events, or
 * the function is gone.
 */
export async function eventPage(
  { pool, matcher, site }: PageDependencies,
  row: ReplayRow,
  { most, signal }: { most: number; signal: AbortSignal },
): Promise<FoundPage | null> {
  const found = await reactingFunction(pool, row.project_id, row.function_id);
  if (!found?.functions[0]) return null;
  const known = knownOf(found, 0, site);
  // A replay is for events that were stored before the function was enabled, too.
  const triggers = known.definitions.triggers.map((one) => ({ ...one, enabledAt: Number.NEGATIVE_INFINITY }));
  const names = triggers[0]?.names ?? null;
  const positions = await nextReplayEvents(pool, row, names, PAGE);
  if (positions.length === 0) return null;
  const wanted = positions.filter((one) => one.wanted);
  const page =
    wanted.length === 0
      ? { matched: [], errors: [], left: new Set<string>() }
      : await matcher.match(
          { ...known, definitions: { ...known.definitions, triggers } },
          wanted.map(({ uuid, timestamp }) => ({ projectId: row.project_id, uuid, timestamp })),
          signal,
        );
  const matched = Map.groupBy(page.matched, (one) => one.uuid);
  const masks = await openMasks(pool, row, known.masking.get(row.function_id) ?? null, page.matched);
  const counts = { scanned: 0, matched: 0, masked: 0 };
  const queued: NewInvocation[] = [];
  let last: { timestamp: string; uuid: string } | undefined;
  const looked = new Set<string>();
  for (const position of positions) {
    // What comes later waits for the next page, and the rate for its time.
    if (page.left.has(position.uuid) || (!row.dry_run && queued.length >= most)) break;
    last = position;
    looked.add(position.uuid);
    counts.scanned += 1;
    const invocations = matched.get(position.uuid) ?? [];
    if (invocations.length > 0) counts.matched += 1;
    for (const one of invocations) {
      if (masks.pass(one)) queued.push(invocationOf(one));
      else counts.masked += 1;
    }
  }
  if (!last) throw new Error('a page of a replay has no event'); // Each page has time for one.
  // The others are looked at again by the next page.
  const errors = page.errors.filter(({ uuid }) => looked.has(uuid));
  return {
    done: {
      ...counts,
      ...{ lastTimestamp: last.timestamp, lastId: last.uuid },
      ...{ queued: queued.length, filterErrors: errors.length },
    },
    async write(client) {
      await keepReplayMasks(client, keyOf(row), masks.changed);
      if (row.dry_run) return queued.length;
      await enqueue(client, queued);
      await addLogs(client, errors.slice(0, MOST_ERRORS).map(logOf));
      return queued.length;
    },
  };
}

const keyOf = ({ project_id, id }: ReplayRow) => ({ projectId: project_id, replayId: id });

interface Masks {
  pass(invocation: MatchedEvent): boolean;
  /** The windows that were opened or counted in. */
  changed: Map<string, MaskWindow>;
}

/** Masks by the time of the events, in windows of the replay's own, so that no new event is masked by old ones. */
async function openMasks(
  queryable: Queryable,
  row: ReplayRow,
  rule: MaskingRule | null,
  matched: readonly MatchedEvent[],
): Promise<Masks> {
  const changed = new Map<string, MaskWindow>();
  if (!rule) return { pass: () => true, changed };
  const keys = [...new Set(matched.flatMap(({ mask }) => (mask === null ? [] : [mask])))];
  const windows = await replayMasks(queryable, keyOf(row), keys);
  const ttl = Math.min(rule.ttl ?? LONGEST_WINDOW, LONGEST_WINDOW);
  const masking = new Masking({ ...rule, ttl }, windows);
  return {
    changed,
    pass({ mask, timestamp }) {
      if (mask === null) return true;
      const passed = masking.pass({ key: mask, time: Date.parse(timestamp), invocations: 1 });
      changed.set(mask, windows.get(mask) as MaskWindow);
      return passed > 0;
    },
  };
}

const invocationOf = ({ receivedAt, ...one }: MatchedEvent): NewInvocation => ({
  ...one,
  ...{ id: uuidv7(), clock: receivedAt, seed: randomInt(2 ** 31) },
});

const logOf = ({ projectId, functionId, uuid, message }: FilterError) => ({
  ...{ projectId, functionId, instanceId: uuid, timestamp: new Date().toISOString() },
  ...{ level: 'error' as const, message: cleanText(`Error filtering event ${uuid}: ${message}`) },
});
