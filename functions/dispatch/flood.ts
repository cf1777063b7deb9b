import { type Pool, transaction } from '../../db/pool.ts';
import { endCancelled, endFlood, lockFlood, markFloods, requeue } from '../rows/positions.ts';
import { hasBacklog } from '../rows/unstored.ts';
import { MOST_WAITING } from '../rules/replay.ts';

export interface FloodDependencies {
  pool: Pool;
  /** Invocations of these functions wait. */
  queued(functions: readonly { projectId: number; functionId: string }[]): void;
  /** Events were gone when they were to be queued. */
  missing(count: number): void;
}

export interface FloodLimits {
  /** With more waiting invocations a function keeps positions only. */
  most: number;
  /** With fewer, some of its positions are queued. */
  least: number;
  /** The same for all functions of a project together. */
  mostOfProject: number;
  leastOfProject: number;
  /** About how many at once. */
  atOnce: number;
}

const LIMITS: FloodLimits = {
  ...{ most: MOST_WAITING, least: MOST_WAITING / 2, atOnce: 10_000 },
  ...{ mostOfProject: 5 * MOST_WAITING, leastOfProject: 3 * MOST_WAITING },
};

/**
 * Keeps the queue of a function from filling the disk: what comes in while it has too many waiting invocations is kept as
 * positions, and queued, in its order, when there is room again.
 */
export class Flood {
  readonly #deps: FloodDependencies;
  readonly #limits: FloodLimits;

  constructor(deps: FloodDependencies, limits: Partial<FloodLimits> = {}) {
    this.#deps = deps;
    this.#limits = { ...LIMITS, ...limits };
  }

  /** Looks which functions have too many waiting invocations. */
  async look(): Promise<number> {
    await markFloods(this.#deps.pool, this.#limits);
    return 0;
  }

  /**
   * Looks at the function that was looked at longest ago: lists those of its positions that are cancelled, or queues some if
   * it has room. Returns how many.
   */
  async turn(): Promise<number> {
    const { least, leastOfProject, atOnce } = this.#limits;
    const done = await transaction(this.#deps.pool, async (client) => {
      const key = await lockFlood(client);
      if (!key) return undefined;
      const cancelled = await endCancelled(client, key, atOnce);
      if (cancelled > 0) return { queued: 0, missing: 0, cancelled, key };
      if (await hasBacklog(client, key, least)) return undefined;
      if (await hasBacklog(client, { projectId: key.projectId }, leastOfProject)) return undefined;
      const requeued = await requeue(client, key, atOnce);
      if (!requeued) await endFlood(client, key);
      return requeued && { ...requeued, cancelled: 0, key };
    });
    if (!done) return 0;
    if (done.missing > 0) this.#deps.missing(done.missing);
    if (done.queued > 0) this.#deps.queued([done.key]);
    return done.queued + done.missing + done.cancelled;
  }
}
