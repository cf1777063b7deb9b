// The steps of replays and broadcasts. Their workflows call them again and again; each can be repeated at any point.
import { setTimeout as pause } from 'node:timers/promises';
import { closeHorizon, readHorizon } from '../../db/horizon.ts';
import { type Pool, transaction } from '../../db/pool.ts';
import { NoTurnError, Turns } from '../../db/turns.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Work } from '../../tenancy/product.ts';
import { eventPage, type FoundPage, type PageDependencies } from '../replay/event-page.ts';
import { personPage } from '../replay/person-page.ts';
import { rerunPage } from '../replay/rerun-page.ts';
import { countPersons } from '../rows/broadcasts.ts';
import { addCounts } from '../rows/counts.ts';
import {
  advanceReplay,
  beginReplay as begin,
  cancelStopped,
  changeReplay,
  correctQueued,
  countReplayEvents,
  findReplay,
  hasMoreWaiting,
  holdReplay,
  namesOfReplay,
  quietReplays,
  type ReplayRow,
} from '../rows/replays.ts';
import { allWritten, countEnded, markNow } from '../rows/reruns.ts';
import { disabledFunctions } from '../rows/states.ts';
import { allowanceOf, DELETED, isActive, MOST_WAITING, SWITCHED_OFF } from '../rules/replay.ts';
import { WATCHER } from '../rules/watcher.ts';
import type { FunctionTemporal, ReplayProgress, ReplayReference, ReplayReport } from '../temporal.ts';

export interface ReplayRunDependencies extends PageDependencies {
  pool: Pool;
  temporal: FunctionTemporal;
  logger: Pick<Logger, 'warn' | 'info'>;
  /** How long a call does pages, in milliseconds. Tests make it shorter. */
  callMilliseconds?: number;
}

const CLOSING = 2_000;
const COUNTING = 20_000;
/** Few count at once, so that most connections are left for what goes on. Who has no turn does without a total. */
const counters = new Turns({ atOnce: 2, perAsker: 1 });
/** How long to wait for transactions that are writing what has ended, in milliseconds. */
const WRITING = 20_000;
const CALL = 10_000;
/** How long to wait for room in the queue, for a disabled function, and for a turn, in milliseconds. */
const HELD = 30_000;
const NO_TURN = 2_000;
const BEAT = 5_000;

/** Does work that says nothing by itself, and beats meanwhile. */
async function beating<T>({ beat }: Pick<Work, 'beat'>, work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => beat(), BEAT);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** Finds out what a replay is to look at: everything that is stored by now. */
export async function beginReplay(
  { pool, logger }: Pick<ReplayRunDependencies, 'pool' | 'logger'>,
  reference: ReplayReference,
  work: Work,
): Promise<void> {
  const row = await findReplay(pool, reference);
  if (!row || row.horizon !== null || !isActive(row.status)) return;
  await beating(work, async () => {
    const horizon = await horizonOf(pool, row, work.signal);
    const total = await count(pool, row, horizon).catch((error: unknown) => {
      logger.warn({ err: error, replayId: row.id }, 'the events of a replay could not be counted');
      return null;
    });
    await begin(pool, reference, { horizon, total });
  });
}

/** Until when something was stored that is looked at. Persons are taken as they are. */
function horizonOf(pool: Pool, row: ReplayRow, signal: AbortSignal): Promise<string> {
  if (row.kind === 'replay') return horizonAfter(pool, row.created_at, signal);
  return row.kind === 'rerun' ? endedUntil(pool, signal) : Promise.resolve(row.created_at);
}

/**
 * Waits until everything is written that had ended. A transaction that stays open for longer than patience is not waited
 * for: what it ends stays in the list of what has failed.
 */
async function endedUntil(pool: Pool, signal: AbortSignal): Promise<string> {
  const now = await markNow(pool);
  const until = performance.now() + WRITING;
  while (performance.now() < until && !(await allWritten(pool, now)))
    await pause(WRITING / 100, undefined, { signal });
  return now.instant;
}

/** Waits until all events are final that were stored before an instant. */
async function horizonAfter(pool: Pool, instant: string, signal: AbortSignal): Promise<string> {
  for (;;) {
    signal.throwIfAborted();
    const horizon = (await closeHorizon(pool, CLOSING)) ?? (await readHorizon(pool));
    if (Date.parse(horizon) >= Date.parse(instant)) return horizon;
    await pause(CLOSING / 10, undefined, { signal });
  }
}

const count = (pool: Pool, row: ReplayRow, horizon: string): Promise<number> =>
  counters.take({ projectId: row.project_id }, () =>
    transaction(pool, async (client) => {
      await client.query(`set local statement_timeout = ${COUNTING}`);
      if (row.kind === 'replay') return countReplayEvents(client, row, horizon);
      return row.kind === 'rerun' ? countEnded(client, row, horizon) : countPersons(client, row.project_id);
    }),
  );

const PAGES = { replay: eventPage, broadcast: personPage, rerun: rerunPage } as const;

const GONE: ReplayProgress = {
  ...{ status: 'cancelled', reason: DELETED, kind: 'replay', dryRun: false, held: null },
  ...{ total: null, scanned: 0, matched: 0, queued: 0 },
};

const progressOf = (row: ReplayRow): ReplayProgress => ({
  ...{ status: row.status, reason: row.reason, kind: row.kind, dryRun: row.dry_run, held: row.held },
  ...{ total: row.total, scanned: row.scanned, matched: row.matched, queued: row.queued },
});

/**
 * Does pages of a replay for some seconds, up to what its rate allows. A page moves the row on in the transaction that
 * writes its invocations, so nothing is there twice, and nothing is left out, wherever this stops.
 */
export async function replayPages(
  deps: ReplayRunDependencies,
  reference: ReplayReference,
  work: Work,
): Promise<ReplayReport> {
  const until = performance.now() + (deps.callMilliseconds ?? CALL);
  let left: number | undefined;
  let wait = 0;
  for (;;) {
    work.signal.throwIfAborted();
    work.beat();
    const row = await findReplay(deps.pool, reference);
    if (!row) return { ...GONE, atLeast: 0, wait: 0 };
    const all = allowanceOf(row.rate_per_second);
    left ??= all;
    if (row.status !== 'running' || left <= 0 || wait > 0 || performance.now() > until) {
      const queued = all - Math.max(0, left);
      const atLeast = row.rate_per_second === null ? 0 : (queued * 1_000) / row.rate_per_second;
      return { ...progressOf(row), atLeast: row.dry_run ? 0 : Math.round(atLeast), wait };
    }
    if (row.horizon === null) throw new Error('a replay has not begun');
    if (!(await mayGoOn(deps.pool, row))) {
      wait = HELD;
      continue;
    }
    try {
      const most = left;
      const page = await beating(work, () => PAGES[row.kind](deps, row, { most, signal: work.signal }));
      const queued = await finishPage(deps.pool, row, page);
      if (!row.dry_run) left -= queued;
    } catch (error) {
      if (!(error instanceof NoTurnError)) throw error;
      wait = NO_TURN;
    }
  }
}

/** Writes what a page leads to, and moves the replay on, unless somebody else has. Returns how many invocations it queued. */
async function finishPage(pool: Pool, row: ReplayRow, page: FoundPage | null): Promise<number> {
  const { project_id: projectId, function_id: functionId } = row;
  if (!page) {
    const stopped = await cancelStopped(pool, { ...STOPPED, limit: 1, only: row });
    if (stopped.length === 0)
      await changeReplay(pool, keyOf(row), { from: ['running'], to: 'completed', page: row.page });
    return 0;
  }
  const done = await transaction(pool, async (client) => {
    if (!(await advanceReplay(client, row, page.done))) return null;
    const count = await page.write(client);
    if (count !== page.done.queued) await correctQueued(client, row, count - page.done.queued);
    if (count > 0 && !row.dry_run) {
      await addCounts(client, [{ projectId, functionId, kind: 'other', name: 'triggered', count }]);
    }
    return count;
  });
  if (done === null) await cancelStopped(pool, { ...STOPPED, limit: 1, only: row });
  return done ?? 0;
}

const STOPPED = { deleted: DELETED, switchedOff: SWITCHED_OFF };
const keyOf = ({ project_id, id }: ReplayRow) => ({ projectId: project_id, replayId: id });

/** Answers whether more may be queued. If not, writes down why. */
async function mayGoOn(pool: Pool, row: ReplayRow): Promise<boolean> {
  if (row.dry_run) return true;
  const { project_id: projectId, function_id: functionId } = row;
  const disabled = await disabledFunctions(pool, [projectId], WATCHER);
  const held = disabled.has(functionId)
    ? 'watcher'
    : (await hasMoreWaiting(pool, { projectId, functionId }, MOST_WAITING))
      ? 'queue'
      : null;
  if (held !== null) await holdReplay(pool, row, held);
  return held === null;
}

export interface EndReplayInput extends ReplayReference {
  status: 'cancelled' | 'failed';
  reason: string;
}

/** Ends a replay whose workflow cannot go on. Returns how far it came. */
export async function endReplay(
  { pool }: Pick<ReplayRunDependencies, 'pool'>,
  { status, reason, ...reference }: EndReplayInput,
): Promise<ReplayProgress> {
  await changeReplay(pool, reference, { from: ['running', 'paused'], to: status, reason });
  const row = await findReplay(pool, reference);
  return row ? progressOf(row) : GONE;
}

/** A replay that has done nothing for so long has lost its workflow, in seconds. */
const QUIET = 120;
const AT_ONCE = 100;

/** Ends replays whose function was switched off or deleted, and starts workflows that are missing. */
export async function mendReplays(
  { pool, temporal, logger }: Pick<ReplayRunDependencies, 'pool' | 'temporal' | 'logger'>,
  { signal, beat }: Work,
): Promise<number> {
  const stopped = await cancelStopped(pool, { ...STOPPED, limit: AT_ONCE });
  const quiet = await quietReplays(pool, { seconds: QUIET, limit: AT_ONCE });
  for (const row of [...stopped, ...quiet]) {
    signal.throwIfAborted();
    beat();
    await temporal.stir({ ...row, ...(await namesOfReplay(pool, row)) });
  }
  if (quiet.length > 0) logger.info({ replays: quiet.length }, 'replays that stood still were stirred');
  return stopped.length + quiet.length;
}
