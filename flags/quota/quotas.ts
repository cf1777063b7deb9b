import { uuidv7 } from '../../db/uuid.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { Quiet } from '../../telemetry/quiet.ts';
import type { Lease, LeaseRequest } from '../rows/quotas.ts';

/** Seconds after which what a dead process held can be had by others. */
const LEASE_SECONDS = 15;
/** How often a lease is continued, in milliseconds. */
const EVERY = 1_000;
/** A lease is for what was used in a turn, so many times over, and for so much at least. */
const AHEAD = 2;
const LEAST = 10;
/** After so many turns without a request, a lease goes back. */
const IDLE_TURNS = 2;
/** Of an organization that does not exist. */
const NOTHING: Lease = { bound: 0, isNew: false, claimed: 0, room: 0 };
/** When nothing is left, or the database is away, it is asked again after so long. */
const REST = 1_000;
/** So long a request waits for the database. */
const PATIENCE = 1_000;

export interface QuotaOptions {
  logger: Pick<Logger, 'warn'>;
  /** The quota of an organization that has none of its own. Zero: it has none. */
  usualBound: number;
  lease(asked: LeaseRequest): Promise<Lease | undefined>;
  giveBack(given: Pick<LeaseRequest, 'organizationId' | 'id' | 'used' | 'beyond'>): Promise<void>;
  now?: () => number;
  every?: number;
  patience?: number;
}

/** The quotas of organizations, of which this process holds leases. */
export interface Quotas {
  /**
   * Takes so much of an organization's quota, mostly without a promise. `own` is the quota of the organization itself,
   * null if it has none of its own. False: not so much is left.
   */
  take(organizationId: string, own: number | null, amount: number): boolean | Promise<boolean>;
  /** Whether it is known that nothing is left. */
  isOver(organizationId: string, own: number | null): boolean;
  /** Gives everything back. */
  close(): Promise<void>;
}

interface Holding {
  /** The id of the lease. */
  id: string;
  /** Both since the lease was new. */
  used: number;
  claimed: number;
  /** After this time others may have what is held here. */
  until: number;
  /** What was given out without a lease, and is not told yet. */
  beyond: number;
  /** `used` when the lease was continued last. */
  usedBefore: number;
  /** When no more than so much is left, more is asked for. */
  low: number;
  /** What requests wait for. */
  wanted: number;
  /** Turns without a request. */
  idle: number;
  /** So much, or more, could not be had when it was asked for last. It is not asked for again before `until`. */
  short: { of: number; until: number } | undefined;
  awayUntil: number;
  asking: Promise<Lease | undefined> | undefined;
}

/**
 * Bounds the requests for flags of organizations. A process leases some of an organization's quota from the database, in
 * advance, so that no request writes and all processes together never give out more than there is. What a process that
 * dies has claimed counts as used; the rest of its lease comes back when the lease ends.
 *
 * While the database is away, requests go on unless the quota was used up before. They are added to what was used.
 */
export function createQuotas(options: QuotaOptions): Quotas {
  const { usualBound, logger } = options;
  const { now = () => performance.now(), every = EVERY, patience = PATIENCE } = options;
  const holdings = new Map<string, Holding>();
  const quiet = new Quiet();
  let timer: NodeJS.Timeout | undefined;

  function holdingOf(organizationId: string): Holding {
    let holding = holdings.get(organizationId);
    if (!holding) {
      holding = {
        ...{ id: uuidv7(), used: 0, claimed: 0, until: 0, beyond: 0, usedBefore: 0, low: 0, wanted: 0 },
        ...{ idle: 0, short: undefined, awayUntil: 0, asking: undefined },
      };
      holdings.set(organizationId, holding);
      timer ??= setInterval(() => {
        for (const [id, one] of holdings) continueLease(id, one);
      }, every).unref();
    }
    return holding;
  }

  function takeHeld(holding: Holding, amount: number): boolean {
    if (now() >= holding.until || holding.used + amount > holding.claimed) return false;
    holding.used += amount;
    return true;
  }

  /** Asks the database for more, for all who want it. Undefined: it did not answer. */
  function ask(organizationId: string, holding: Holding): Promise<Lease | undefined> {
    holding.asking ??= request(organizationId, holding).finally(() => {
      holding.asking = undefined;
    });
    return holding.asking;
  }

  async function request(organizationId: string, holding: Holding): Promise<Lease | undefined> {
    const { id, used, beyond } = holding;
    const wanted = Math.max(LEAST, holding.wanted, AHEAD * (used - holding.usedBefore));
    holding.wanted = 0;
    holding.usedBefore = used;
    // Here the lease ends no later than in the database.
    const until = now() + LEASE_SECONDS * 1_000;
    const seconds = LEASE_SECONDS;
    try {
      const asked = { organizationId, id, used, beyond, wanted, spare: wanted, seconds, usualBound };
      const got = (await options.lease(asked)) ?? NOTHING;
      holding.beyond -= beyond;
      if (got.isNew) {
        // What was used of the lease before is settled.
        holding.used = 0;
        holding.usedBefore = 0;
      }
      holding.claimed = got.claimed;
      holding.until = until;
      holding.low = wanted / 2;
      if (holding.short && got.room - holding.used >= holding.short.of) holding.short = undefined;
      return got;
    } catch (error) {
      holding.awayUntil = now() + REST;
      const about = { err: error, organization_id: organizationId };
      quiet.tell((untold) =>
        logger.warn(
          { ...about, untold },
          'the quota of flags cannot be asked for; requests are counted later',
        ),
      );
      return undefined;
    }
  }

  async function inTime(answer: Promise<Lease | undefined>, holding: Holding): Promise<Lease | undefined> {
    const late = Promise.withResolvers<undefined>();
    const timeout = setTimeout(() => {
      holding.awayUntil = now() + REST;
      late.resolve(undefined);
    }, patience);
    return Promise.race([answer, late.promise]).finally(() => clearTimeout(timeout));
  }

  async function takeMore(organizationId: string, holding: Holding, amount: number): Promise<boolean> {
    while (now() >= holding.awayUntil) {
      holding.wanted += amount;
      const got = await inTime(ask(organizationId, holding), holding);
      if (takeHeld(holding, amount)) return true;
      if (got && got.room - holding.used < amount) {
        holding.short = { of: amount, until: now() + REST };
        return false;
      }
      // Others were first.
    }
    if (holding.short && amount >= holding.short.of) return false;
    holding.beyond += amount;
    return true;
  }

  function continueLease(organizationId: string, holding: Holding): void {
    if (holding.asking || now() < holding.awayUntil) return;
    holding.idle += 1;
    if (holding.idle <= IDLE_TURNS || holding.beyond > 0) void ask(organizationId, holding);
    else {
      holdings.delete(organizationId);
      void release(organizationId, holding);
    }
  }

  /** If the database does not hear of it, the rest comes back when the lease ends. */
  async function release(organizationId: string, { id, used, beyond, until }: Holding): Promise<void> {
    if (until > 0) await options.giveBack({ organizationId, id, used, beyond }).catch(() => undefined);
  }

  return {
    take(organizationId, own, amount) {
      if ((own ?? usualBound) === 0) return true;
      const holding = holdingOf(organizationId);
      holding.idle = 0;
      if (takeHeld(holding, amount)) {
        const isLow = holding.claimed - holding.used < holding.low;
        if (isLow && !holding.short && now() >= holding.awayUntil) void ask(organizationId, holding);
        return true;
      }
      const { short } = holding;
      if (short && amount >= short.of && now() < short.until) return false;
      return takeMore(organizationId, holding, amount);
    },
    isOver(organizationId, own) {
      if ((own ?? usualBound) === 0) return false;
      const short = holdings.get(organizationId)?.short;
      return short !== undefined && short.of <= 1 && now() < short.until;
    },
    async close() {
      clearInterval(timer);
      const all = [...holdings];
      holdings.clear();
      const giveBack = async ([organizationId, holding]: [string, Holding]) => {
        await holding.asking;
        await release(organizationId, holding);
      };
      await Promise.all(all.map(giveBack));
    },
  };
}
