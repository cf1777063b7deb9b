import type { Pool } from '../../db/pool.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { extendLeases, type QueueRow } from '../rows/queue.ts';
import { allOf } from './batches.ts';

interface Held {
  seq: number;
  /** Under which lease it was claimed. The attempt knows it by this one. */
  claimed: string;
  /** Under which lease it is held now. */
  lease: string;
  /** Nobody else takes it before, in milliseconds of the clock that is never set. */
  until: number;
  isLost: boolean;
}

/** A request ends within this time, with all that is to do before and after it. In milliseconds, and as a part of a lease at most. */
const OF_A_REQUEST = 12_000;
const OF_A_LEASE = 0.8;
/** Leases are made longer so many times while they would last. */
const TIMES = 3;

/**
 * What this process has claimed and not yet written the result of. While the process lives, leases are made longer, so nobody
 * else begins what is still under way, however long it takes.
 */
export class Leases {
  readonly #pool: Pool;
  readonly #logger: Pick<Logger, 'warn'>;
  /** How long a lease is. */
  readonly seconds: number;
  readonly #held = new Map<number, Held>();
  #timer: NodeJS.Timeout | undefined;
  #renewing: Promise<void> | undefined;

  constructor(pool: Pool, logger: Pick<Logger, 'warn'>, seconds: number) {
    this.#pool = pool;
    this.#logger = logger;
    this.seconds = seconds;
  }

  get #milliseconds(): number {
    return this.seconds * 1_000;
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#renewing ??= this.#renew().finally(() => {
        this.#renewing = undefined;
      });
    }, this.#milliseconds / TIMES);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewing;
  }

  /**
   * Notes what was claimed by a claim that was asked for at `began`, by `performance.now()`. Returns what is to be attempted.
   * What is left out is still under way here: its lease had ended because Postgres did not hear of it for too long.
   */
  hold(rows: readonly QueueRow[], lease: string, began: number): QueueRow[] {
    const until = began + this.#milliseconds;
    const known = (row: QueueRow) => {
      const held = this.#held.get(row.seq);
      return held && row.was_lease === held.lease ? held : undefined;
    };
    return rows.filter((row) => {
      const underWay = allOf(row).map(known);
      if (underWay.every((held) => held !== undefined)) {
        for (const held of underWay) Object.assign(held, { lease, until, isLost: false });
        return false;
      }
      for (const { seq } of allOf(row)) {
        const before = this.#held.get(seq);
        if (before) before.isLost = true;
        this.#held.set(seq, { seq, claimed: lease, lease, until, isLost: false });
      }
      return true;
    });
  }

  /** Its result is written, or it was given back. */
  release({ seq }: Pick<QueueRow, 'seq'>, claimed: string): void {
    if (this.#held.get(seq)?.claimed === claimed) this.#held.delete(seq);
  }

  /** Under which lease something is held that was claimed under another one. */
  leaseOf(seq: number, claimed: string): string {
    const held = this.#held.get(seq);
    return held?.claimed === claimed ? held.lease : claimed;
  }

  /** Its lease was made longer by a statement that was asked for at `began`. */
  extended(row: QueueRow, claimed: string, began: number): void {
    for (const { seq } of allOf(row)) {
      const held = this.#held.get(seq);
      if (held?.claimed === claimed) held.until = began + this.#milliseconds;
    }
  }

  /** Makes sure that it is ours until a request has ended that begins now. False: it may belong to somebody else. */
  async secure(row: QueueRow, claimed: string): Promise<boolean> {
    // A batch changes hands as a whole. One of it may have been deleted.
    const ours = () =>
      allOf(row).flatMap(({ seq }) => {
        const one = this.#held.get(seq);
        return one?.claimed === claimed && !one.isLost ? [one] : [];
      });
    const least = Math.min(OF_A_REQUEST, this.#milliseconds * OF_A_LEASE);
    const isSafe = (held: readonly Held[]) =>
      held.length > 0 && held.every(({ until }) => until - performance.now() >= least);
    if (isSafe(ours())) return true;
    await this.#extend(ours());
    return isSafe(ours());
  }

  async #renew(): Promise<void> {
    const soon = performance.now() + this.#milliseconds * (1 - 1 / TIMES);
    const ending = [...this.#held.values()].filter(({ isLost, until }) => !isLost && until < soon);
    try {
      await this.#extend(ending);
    } catch (error) {
      this.#logger.warn({ err: error }, 'leases of invocations of functions could not be made longer');
    }
  }

  async #extend(some: readonly Held[]): Promise<void> {
    if (some.length === 0) return;
    const began = performance.now();
    const asked = some.map(({ seq, lease }) => ({ seq, lease }));
    const ours = await extendLeases(this.#pool, asked, this.seconds);
    for (const [index, held] of some.entries()) {
      // It may have been claimed anew here meanwhile.
      if (held.lease !== asked[index]?.lease) continue;
      const isLonger = ours.get(held.seq);
      if (isLonger === undefined) held.isLost = true;
      else if (isLonger) held.until = Math.max(held.until, began + this.#milliseconds);
    }
  }
}
