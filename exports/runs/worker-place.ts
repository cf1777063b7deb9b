// Places of workers: an attempt takes one before it works, and gives it back when it ends. Waiting happens outside, in
// the workflow, which is told when a place is kept for it.
import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from '../../db/pool.ts';
import { Refusal } from '../../refusals.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { callWaiting } from '../rows/place-queue.ts';
import {
  announceWorker,
  forgetEnded,
  forgetVerification,
  listIdleVerifications,
  withdrawWorker,
} from '../rows/place-workers.ts';
import { type Called, type Claim, LANES, type Lane, type Place, type PlaceKey } from '../rows/places.ts';
import {
  type Ending,
  listKept,
  releasePlace,
  renewPlace,
  stopAsking,
  type Taken,
  takePlace,
} from '../rows/worker-places.ts';
import type { ExportTemporal } from '../temporal.ts';
import { LOST_PLACE, OvertakenError } from './attempt.ts';
import { AttemptFailedError } from './judgement.ts';
import type { PlaceRhythm } from './rhythm.ts';
import { LastAttemptError, type Work, type WorkAttempt } from './work.ts';

/** No worker has a free place. The work stands in the queue, and its workflow is told when it has one. */
export class NoPlaceError extends Error {
  override readonly name = 'NoPlaceError';
  /** Since when it waits. */
  readonly since: string;

  constructor(since: string) {
    super(`Every place of the workers is taken; it waits for one since ${since}`);
    this.since = since;
  }
}

/** A place is kept for the work, but this worker has none free. Asking again soon finds another worker. */
export class PlaceElsewhereError extends Error {
  override readonly name = 'PlaceElsewhereError';
  readonly retryAfterMilliseconds: number;

  constructor(retryAfterMilliseconds: number) {
    super('Another worker has a free place for it');
    this.retryAfterMilliseconds = retryAfterMilliseconds;
  }
}

const RHYTHM: PlaceRhythm = {
  // A report renews the lease every three seconds. A process may stand still for a while without losing its work.
  lease: 30_000,
  reservation: 30_000,
  setback: 5 * 60_000,
  // Where places are taken for moments only, this saves the workflow a wait. An activity that asks has no place.
  ask: 5_000,
  announce: 5_000,
  alive: 20_000,
  elsewhere: 250,
  call: 5_000,
};

/** What admission needs. */
export interface PlaceDependencies {
  pool: Pool;
  temporal: Pick<ExportTemporal, 'callToPlace' | 'isReachable' | 'within' | 'fateOfRun'>;
  logger: Logger;
  /** The id of this worker. */
  worker: string;
  /** Its activities that ask for a place. */
  asking: Asking;
  rhythm?: { places?: Partial<PlaceRhythm> } | undefined;
}

const rhythmOf = ({ rhythm }: Pick<PlaceDependencies, 'rhythm'>): PlaceRhythm => ({
  ...RHYTHM,
  ...rhythm?.places,
});

/**
 * Does an attempt in a place of this worker, and numbers it. Throws a NoPlaceError if there is none. Workflows of older versions cannot
 * wait (`claim.workflowId` is undefined): they work without a place if they get none at once. A run that has ended
 * needs no place either.
 */
export async function inPlace<T>(
  deps: PlaceDependencies,
  { workflowId, ...claim }: Omit<Claim, 'workflowId'> & { workflowId: string | undefined },
  work: WorkAttempt,
  attempt: (place: Place | undefined, work: WorkAttempt) => Promise<T>,
): Promise<T> {
  const rhythm = rhythmOf(deps);
  const isOld = workflowId === undefined;
  const asked = { ...claim, workflowId: workflowId ?? '' };
  const take = async (): Promise<Taken> => {
    const { taken, called } = await takePlace(deps.pool, asked, deps.worker, rhythm, !isOld);
    await call(deps, called);
    return taken;
  };
  let taken = await take();
  if (taken.outcome === 'waiting' && (await comesUp(deps, claim, work))) taken = await take();
  if (taken.outcome === 'waiting') throw new NoPlaceError(taken.since);
  if (taken.outcome === 'elsewhere' && !isOld) throw new PlaceElsewhereError(rhythm.elsewhere);
  if (taken.outcome !== 'held') return attempt(undefined, work);
  const { fence, attempts } = taken;
  let ending: Ending = { over: false };
  try {
    const place = { fence, attempts, lease: rhythm.lease };
    const result = await attempt(place, isOld ? work : { ...work, number: attempts });
    ending = { over: true, completed: true };
    return result;
  } catch (error) {
    const over = isOld || isFinal(error);
    ending = work.signal.aborted ? { over } : { over, completed: false };
    throw error;
  } finally {
    await release(deps, claim, fence, ending);
  }
}

/** How often an activity that asks for a place says that it lives, and looks whether another worker keeps it one. */
const ASK_EVERY = 250;

/** The activities of a worker that ask for a place. They wait for a moment before their workflows do. */
export interface Asking {
  /** Resolves when a place is kept for somebody, or after some milliseconds. */
  expect(id: string, milliseconds: number): Promise<void>;
  /** Says that a place is kept for somebody, who may ask here or at another worker. */
  tell(id: string): void;
}

export function createAsking(pool: Pool): Asking {
  const expected = new Map<string, AbortController>();
  let isLooking = false;
  const tell = (id: string) => expected.get(id)?.abort();

  /** Other workers keep places too, and cannot tell. */
  async function look(): Promise<void> {
    isLooking = true;
    while (expected.size > 0) {
      await pause(ASK_EVERY);
      for (const id of await listKept(pool, [...expected.keys()]).catch(() => [])) tell(id);
    }
    isLooking = false;
  }
  return {
    async expect(id, milliseconds) {
      const told = new AbortController();
      expected.set(id, told);
      if (!isLooking) void look();
      await pause(milliseconds, undefined, { signal: told.signal }).catch(() => undefined);
      if (expected.get(id) === told) expected.delete(id);
    },
    tell,
  };
}

/** Waits for a moment whether a place comes up. False: the workflow has to wait for it. */
async function comesUp(
  deps: PlaceDependencies,
  claim: PlaceKey,
  { signal, beat }: WorkAttempt,
): Promise<boolean> {
  const { pool, asking } = deps;
  const stop = () => asking.tell(claim.id);
  signal.addEventListener('abort', stop);
  const beating = setInterval(() => beat(), ASK_EVERY * 4);
  try {
    if (!signal.aborted) await asking.expect(claim.id, rhythmOf(deps).ask);
    const kept = await stopAsking(pool, claim);
    signal.throwIfAborted();
    return kept;
  } finally {
    clearInterval(beating);
    signal.removeEventListener('abort', stop);
  }
}

/** Answers whether no further attempt follows. */
const isFinal = (error: unknown): boolean =>
  error instanceof Refusal ||
  error instanceof LastAttemptError ||
  (error instanceof AttemptFailedError && !error.judgement.again);

/** Gives a place back. If Postgres is away, the lease ends by itself. */
async function release(
  deps: PlaceDependencies,
  claim: Omit<Claim, 'workflowId'>,
  fence: number,
  ending: Ending,
): Promise<void> {
  try {
    await call(deps, await releasePlace(deps.pool, claim, fence, ending, rhythmOf(deps)));
  } catch (error) {
    deps.logger.debug({ err: error, id: claim.id }, 'a place could not be given back; its lease ends');
  }
}

/** A place of an attempt that has no row of its own to report to. */
export interface HeldPlace {
  /** Is aborted when the attempt has to stop: its work was told to stop, or it has lost its place. */
  signal: AbortSignal;
  close(): Promise<void>;
}

/** Renews the place of an attempt until it is closed. */
export function holdPlace(
  { pool, rhythm }: Pick<PlaceDependencies, 'pool' | 'rhythm'>,
  key: PlaceKey,
  place: Place | undefined,
  { signal }: Pick<Work, 'signal'>,
): HeldPlace {
  if (!place) return { signal, close: async () => undefined };
  const closed = new AbortController();
  const lost = new AbortController();
  const renewing = (async () => {
    while (!closed.signal.aborted) {
      await pause(rhythmOf({ rhythm }).lease / 10, undefined, { signal: closed.signal }).catch(
        () => undefined,
      );
      // While Postgres is away, nobody can take the place either.
      if (closed.signal.aborted || (await renewPlace(pool, key, place).catch(() => true))) continue;
      lost.abort(new OvertakenError(LOST_PLACE));
      return;
    }
  })();
  return {
    signal: AbortSignal.any([signal, lost.signal]),
    async close() {
      closed.abort();
      await renewing;
    },
  };
}

/** Tells workflows that a place is kept for them. What fails is repeated as long as the place is kept. */
async function call(deps: PlaceDependencies, called: readonly Called[]): Promise<void> {
  const { temporal, logger, asking } = deps;
  for (const one of called) if (one.asks) asking.tell(one.id);
  const deaf = called.filter((one) => !one.asks);
  if (deaf.length === 0 || !temporal.isReachable()) return;
  const tell = (one: Called) => temporal.callToPlace(one);
  const told = await temporal.within(rhythmOf(deps).call, () => Promise.allSettled(deaf.map(tell)));
  for (const one of told) {
    if (one.status === 'rejected')
      logger.debug({ err: one.reason }, 'a workflow was not told of its place; this is repeated');
  }
}

/** Keeps every free place for somebody, and repeats what was not heard. */
async function callAll(deps: PlaceDependencies): Promise<number> {
  const rhythm = rhythmOf(deps);
  let told = 0;
  for (const lane of LANES) {
    const called = await callWaiting(deps.pool, lane, rhythm, rhythm.announce);
    await call(deps, called);
    told += called.length;
  }
  return told;
}

export interface Announcement {
  /** Says that the worker takes no more work. */
  close(): Promise<void>;
}

/** Says, as long as the worker runs, that it lives and how many places it has. */
export async function announcePlaces(
  deps: PlaceDependencies,
  places: Readonly<Record<Lane, number>>,
): Promise<Announcement> {
  const { pool, worker, logger } = deps;
  const { announce, alive } = rhythmOf(deps);
  const closed = new AbortController();
  await announceWorker(pool, worker, places, alive);
  const announcing = (async () => {
    while (!closed.signal.aborted) {
      await pause(announce, undefined, { signal: closed.signal }).catch(() => undefined);
      if (closed.signal.aborted) return;
      try {
        if (await announceWorker(pool, worker, places, alive)) await callAll(deps);
      } catch (error) {
        logger.debug({ err: error }, 'the places of this worker could not be announced');
      }
    }
  })();
  const withdraw = async () => {
    closed.abort();
    await announcing;
    await withdrawWorker(pool, worker).catch((error) =>
      logger.debug({ err: error }, 'the places of this worker could not be withdrawn'),
    );
  };
  let withdrawn: Promise<void> | undefined;
  return {
    close() {
      withdrawn ??= withdraw();
      return withdrawn;
    },
  };
}

const MOST = 1_000;

/**
 * Repairs what is wrong with places: frees those of workers that are gone, forgets work that has ended, and tells
 * workflows again that did not hear. Returns how many rows and workflows.
 */
export async function keepPlaces(
  deps: Omit<PlaceDependencies, 'worker'>,
  { signal, beat }: Work,
): Promise<number> {
  const { pool, temporal } = deps;
  let repaired = await forgetEnded(pool, MOST);
  for (const one of await listIdleVerifications(pool, MOST)) {
    signal.throwIfAborted();
    beat();
    const fate = await temporal.fateOfRun({ workflow_id: one.workflowId, workflow_run_id: one.id });
    if (fate !== 'running' && (await forgetVerification(pool, one))) repaired += 1;
  }
  return repaired + (await callAll({ ...deps, worker: '' }));
}
