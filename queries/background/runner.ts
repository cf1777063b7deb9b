import { isDatabaseUnavailable, type Pool } from '../../db/pool.ts';
import { NoTurnError } from '../../db/turns.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { Refusal } from '../../refusals.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { Quiet } from '../../telemetry/quiet.ts';
import {
  type BackgroundError,
  type BackgroundRequest,
  CLAIM_MS,
  type Claimed,
  claimBackground,
  completeBackground,
  failBackground,
  keepNewest,
  releaseClaim,
  renewClaim,
} from '../rows/background.ts';
import { compressed } from './parts.ts';

/** How often this process looks for queries that others have taken and not ended, in milliseconds. */
const LOOK_EVERY = 2_000;
const RENEW_EVERY = 3_000;
/** A query that could not be answered for now is tried again after so many milliseconds. */
const AGAIN_AFTER = 5_000;
/** A query whose process or whose Postgres has ended this often is not tried again. It may be the reason. */
const MOST_ATTEMPTS = 2;
/** Of so many projects it is known in which order they had their turns. */
const MOST_REMEMBERED = 1_000;
/** So many results of a project are kept, and so many bytes of them. */
const KEPT = { most: 100, mostBytes: 64 * 1024 * 1024 };

/** Answers a query, piece by piece, as JSON. */
export type AnswerQuery = (
  projectId: number,
  request: BackgroundRequest,
  signal: AbortSignal,
) => Promise<AsyncIterable<string>>;

export interface BackgroundQueries {
  /** Looks for queries now. */
  wake(): void;
  /** Looks for queries again and again from now on. */
  start(): void;
  /** Ends the work for a query that was cancelled, if this process does it. */
  cancel(projectId: number, id: string): void;
  /** Ends all work. Other processes do what is left. */
  close(): Promise<void>;
}

export interface BackgroundOptions {
  /** For what is written about queries. */
  pool: Pool;
  answer: AnswerQuery;
  logger: Pick<Logger, 'error' | 'warn'>;
  /** How many queries this process answers at once. */
  atOnce: number;
}

/** Why the work for a query ends before it is done. */
class EndedError extends Error {
  override readonly name = 'EndedError';
  readonly reason: 'lost' | 'closing';

  constructor(reason: EndedError['reason']) {
    super(`the work for a query ends: ${reason}`);
    this.reason = reason;
  }
}

const POISON: BackgroundError = {
  message:
    'The query was begun twice, and each time the process that answered it, or the database, ended meanwhile. ' +
    'Choose a shorter range of time, or add conditions.',
  attr: 'query',
  reason: null,
};
const OURS: BackgroundError = {
  message:
    'The query could not be answered, for a reason that is not its own. The log of the server names it.',
  attr: null,
  reason: null,
};

/** Whether the same query may be answered later, through no fault of its own. */
const isForLater = (error: unknown) =>
  error instanceof NoTurnError ||
  (error instanceof Refusal && (error.kind === 'crowded' || error.kind === 'unavailable'));

/** Answers the queries in the background that no other process answers. */
export function createBackgroundQueries({
  pool,
  answer,
  logger,
  atOnce,
}: BackgroundOptions): BackgroundQueries {
  const running = new Map<string, { abort: AbortController; done: Promise<void> }>();
  const quiet = new Quiet();
  /** The projects that had a turn at this process, the one whose last turn is oldest first. */
  const latest = new Set<number>();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let isAskedAgain = false;
  let isClosed = false;
  const nameOf = (projectId: number, id: string) => `${projectId}/${id}`;

  async function look(): Promise<void> {
    while (running.size < atOnce && !isClosed) {
      const claimed = await claimBackground(pool, uuidv7(), [...latest]);
      if (!claimed) return;
      remember(claimed.projectId);
      const abort = new AbortController();
      if (isClosed) abort.abort(new EndedError('closing'));
      const name = nameOf(claimed.projectId, claimed.id);
      const done = work(claimed, abort).finally(() => {
        if (running.get(name)?.abort === abort) running.delete(name);
        wake();
      });
      running.set(name, { abort, done });
    }
  }

  function remember(projectId: number): void {
    latest.delete(projectId);
    latest.add(projectId);
    for (const oldest of latest) {
      if (latest.size <= MOST_REMEMBERED) return;
      latest.delete(oldest);
    }
  }

  function wake(): void {
    if (isClosed) return;
    isAskedAgain = looking !== undefined;
    if (looking) return;
    looking = look()
      .catch((err: unknown) => {
        quiet.tell((untold) =>
          logger.warn({ err, untold }, 'queries in the background could not be claimed'),
        );
      })
      .finally(() => {
        looking = undefined;
        if (isAskedAgain) wake();
      });
  }

  /** Does the work for a query, and never throws. */
  async function work(claimed: Claimed, abort: AbortController): Promise<void> {
    const stopRenewing = renewing(claimed, abort);
    try {
      if (claimed.attempts > MOST_ATTEMPTS) {
        await failBackground(pool, claimed, POISON);
        return;
      }
      const texts = await answer(claimed.projectId, claimed.request, abort.signal);
      const parts = await compressed(texts, abort.signal);
      await completeBackground(pool, claimed, parts);
      await keepNewest(pool, claimed.projectId, KEPT);
    } catch (error) {
      // If this cannot be written either, the claim ends by itself.
      await end(claimed, abort.signal.aborted ? abort.signal.reason : error).catch((err: unknown) =>
        quiet.tell((untold) =>
          logger.warn({ err, untold }, 'the end of a query in the background was not written'),
        ),
      );
    } finally {
      stopRenewing();
    }
  }

  async function end(claimed: Claimed, error: unknown): Promise<void> {
    if (error instanceof EndedError) {
      if (error.reason === 'closing') await releaseClaim(pool, claimed, { afterMs: 0, isCounted: false });
      return;
    }
    if (isForLater(error)) {
      await releaseClaim(pool, claimed, { afterMs: AGAIN_AFTER, isCounted: false });
      return;
    }
    if (error instanceof Refusal) {
      await failBackground(pool, claimed, {
        ...{ message: error.message, attr: error.field, reason: error.reason },
      });
      return;
    }
    if (isDatabaseUnavailable(error)) {
      // Perhaps the query ends the database.
      await releaseClaim(pool, claimed, { afterMs: AGAIN_AFTER, isCounted: true });
      return;
    }
    const { projectId, id } = claimed;
    logger.error({ err: error, projectId, queryId: id }, 'a query in the background failed');
    await failBackground(pool, claimed, OURS);
  }

  /** Keeps a claim. When it is lost, or cannot be kept for so long that others may have it, the work ends. */
  function renewing(claimed: Claimed, abort: AbortController): () => void {
    let until = performance.now() + CLAIM_MS;
    const beat = setInterval(async () => {
      const asked = performance.now();
      const isOurs = await renewClaim(pool, claimed).catch(() => undefined);
      if (isOurs) until = asked + CLAIM_MS;
      if (isOurs === false || performance.now() > until) abort.abort(new EndedError('lost'));
    }, RENEW_EVERY);
    return () => clearInterval(beat);
  }

  return {
    wake,
    start() {
      timer ??= setInterval(wake, LOOK_EVERY);
      wake();
    },
    cancel(projectId, id) {
      running.get(nameOf(projectId, id))?.abort.abort(new EndedError('lost'));
    },
    async close() {
      isClosed = true;
      clearInterval(timer);
      await looking;
      for (const { abort } of running.values()) abort.abort(new EndedError('closing'));
      await Promise.all([...running.values()].map(({ done }) => done));
    },
  };
}
