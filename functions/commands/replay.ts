import { setTimeout as pause } from 'node:timers/promises';
import { type Pool, transaction } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { refuse } from '../../refusals.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { type Actor, requestOf } from '../../tenancy/actor.ts';
import { type FunctionRow, keyOf } from '../rows/functions.ts';
import { lockReplays } from '../rows/locks.ts';
import {
  changeReplay,
  hasActive,
  insertReplay,
  type NewReplay,
  namesOfReplay,
  type ReplayRow,
} from '../rows/replays.ts';
import { isActive, MOST_ACTIVE, type ReplayStatus } from '../rules/replay.ts';
import type { FunctionTemporal } from '../temporal.ts';
import { auditFunction, WHO } from './audit.ts';

export interface ReplayDependencies {
  pool: Pool;
  temporal: FunctionTemporal;
  logger: Pick<Logger, 'warn'>;
}

export interface ReplayInput {
  after: string;
  before: string;
  /** Null: as fast as the queue takes them. */
  ratePerSecond: number | null;
  /** Whether it only counts. */
  dryRun: boolean;
}

const RETRY_SECONDS = 60;

/** Refuses a function that cannot be run for many events or persons. */
export function requireRunnable(row: FunctionRow, what: string, dryRun: boolean): void {
  if (row.type !== 'destination') {
    throw refuse.invalid(null, `Functions of type ${row.type} cannot ${what}. Only destinations can.`);
  }
  if (!row.enabled && !dryRun) {
    throw refuse.invalid(null, `The function is disabled. Enable it, and then ${what}.`);
  }
}

/** Runs a function for the stored events of a time range, or counts for how many it would run. */
export function replayEvents(
  deps: ReplayDependencies,
  actor: Actor,
  row: FunctionRow,
  { after, before, ratePerSecond, dryRun }: ReplayInput,
): Promise<ReplayRow> {
  requireRunnable(row, 'replay events', dryRun);
  if (Date.parse(after) >= Date.parse(before)) {
    throw refuse.invalid('before', 'The end of the range must be after its beginning, `after`.');
  }
  return startReplay(deps, actor, row, {
    ...{ id: uuidv7(), kind: 'replay', dry_run: dryRun, after, before, rate_per_second: ratePerSecond },
  });
}

const ACTIVITIES = { replay: 'replayed', broadcast: 'broadcast', rerun: 'rerun' } as const;

/** Makes the row of a replay, a broadcast or a rerun, and starts its workflow. */
export async function startReplay(
  deps: ReplayDependencies,
  actor: Actor,
  row: FunctionRow,
  given: NewReplay,
): Promise<ReplayRow> {
  const key = keyOf(row);
  const made = await transaction(deps.pool, async (client) => {
    await lockReplays(client, key.projectId);
    const inserted = await insertReplay(client, key, given);
    if (inserted && (await hasActive(client, key.projectId, MOST_ACTIVE + 1))) {
      throw refuse.contested(
        `This project already has ${MOST_ACTIVE} replays, broadcasts, reruns and counts in progress. Wait for one of ` +
          'them to end, or cancel one.',
        RETRY_SECONDS,
      );
    }
    if (!inserted) {
      const what = given.dry_run ? 'a count' : 'a replay, a broadcast or a rerun';
      throw refuse.contested(
        `This function already has ${what} in progress. Wait for it to end, or cancel it.`,
        RETRY_SECONDS,
      );
    }
    const { id, kind, dry_run, after, before, rate_per_second, selection, version } = inserted;
    const ofRerun = kind === 'rerun' ? { ...selection, version: version ?? 'original' } : {};
    const detail = { name: row.name, replay: id, dry_run, after, before, rate_per_second, ...ofRerun };
    await auditFunction(client, actor, key, ACTIVITIES[kind], detail);
    return inserted;
  });
  await stir(deps, actor, made);
  return made;
}

const CHANGES = {
  pause: { from: ['running'], to: 'paused', activity: 'paused' },
  resume: { from: ['paused'], to: 'running', activity: 'resumed' },
  cancel: { from: ['running', 'paused'], to: 'cancelled', activity: 'cancelled' },
} as const;

/** Pauses, resumes or cancels a replay, a broadcast or a rerun. What it has queued already runs. */
export async function steerReplay(
  deps: ReplayDependencies,
  actor: Actor,
  row: FunctionRow,
  replay: ReplayRow,
  change: keyof typeof CHANGES,
): Promise<ReplayRow> {
  const { from, to, activity } = CHANGES[change];
  if (change === 'resume' && !replay.dry_run && replay.kind !== 'rerun')
    requireRunnable(row, 'resume', false);
  const key = keyOf(row);
  const changed = await transaction(deps.pool, async (client) => {
    const reason = to === 'cancelled' ? `Cancelled by ${WHO[actor.kind]}.` : null;
    const replayKey = { projectId: replay.project_id, replayId: replay.id };
    const done = await changeReplay(client, replayKey, { from, to, reason });
    if (done) {
      await auditFunction(client, actor, key, activity, { name: row.name, replay: replay.id });
    }
    return done;
  });
  if (!changed) throw cannot(change, replay);
  await stir(deps, actor, changed);
  return changed;
}

function cannot(change: keyof typeof CHANGES, { kind, status }: ReplayRow) {
  const now: Record<ReplayStatus, string> = {
    ...{ running: 'is running', paused: 'is paused' },
    ...{ completed: 'has completed', cancelled: 'was cancelled', failed: 'has failed' },
  };
  const hint = isActive(status) ? '' : ' Start a new one.';
  return refuse.invalid(null, `Cannot ${change} a ${kind} that ${now[status]}.${hint}`);
}

/** How long the calls to Temporal may take, and how long a command waits for them, in milliseconds. */
const PATIENCE = 10_000;
const ANSWER_WITHIN = 3_000;
/** How long the calls may take while Temporal is known to be away. */
const SHORT_PATIENCE = 500;

/**
 * Tells the workflow of a replay about its row. A failure does not fail the command: the row is the truth, and maintenance
 * repeats this.
 */
async function stir(
  { pool, temporal, logger }: ReplayDependencies,
  actor: Actor,
  replay: ReplayRow,
): Promise<void> {
  const patience = temporal.isReachable() ? PATIENCE : SHORT_PATIENCE;
  const told = namesOfReplay(pool, replay)
    .then((names) => temporal.within(patience, () => temporal.stir({ ...replay, ...names })))
    .catch((error) => {
      const about = { ...requestOf(actor), err: error, replayId: replay.id };
      logger.warn(about, 'Temporal did not hear of a replay; maintenance tells it again');
    });
  const enough = new AbortController();
  const waited = pause(Math.min(patience, ANSWER_WITHIN), undefined, { signal: enough.signal });
  await Promise.race([told, waited.catch(() => undefined)]);
  enough.abort();
}
