import type { FastifyReply } from 'fastify';
import { RateLimiterPostgres, type RateLimiterRes } from 'rate-limiter-flexible';
import type { Pool } from '../db/pool.ts';
import { errors } from './errors.ts';

/**
 * Which requests are counted together: those of a key, those of a user to the wizard, or those of an address without a
 * key.
 */
export type Budget = 'key' | 'wizard' | 'address';

export interface RateLimit {
  /** Counts one request. Throws a 429 if the budget is used up. */
  consume(budget: Budget, who: string, reply: FastifyReply): Promise<void>;
}

export interface RateLimitOptions {
  enabled: boolean;
  /** Requests per minute. */
  burst: number;
  /** Requests per hour. */
  sustained: number;
}

const UNLIMITED: RateLimit = { consume: async () => undefined };
const MINUTE = 60;
const HOUR = 3_600;
const DAY = 86_400;
const WIZARD_PER_DAY = 20;

const secondsOf = ({ msBeforeNext }: RateLimiterRes) => Math.ceil(msBeforeNext / 1000);

function tell(reply: FastifyReply, limit: number, result: RateLimiterRes): void {
  reply.header('x-ratelimit-limit', limit);
  reply.header('x-ratelimit-remaining', result.remainingPoints);
  reply.header('x-ratelimit-reset', Math.max(1, secondsOf(result)));
}

async function take(
  window: RateLimiterPostgres,
  who: string,
): Promise<{ refused: boolean; result: RateLimiterRes }> {
  try {
    return { refused: false, result: await window.consume(who) };
  } catch (reason) {
    if (reason instanceof Error) throw reason;
    return { refused: true, result: reason as RateLimiterRes };
  }
}

/** Creates a rate limit that counts in Postgres, so that it holds across API processes. */
export function createRateLimit(pool: Pool, options: RateLimitOptions): RateLimit {
  if (!options.enabled) return UNLIMITED;
  const limiter = (keyPrefix: string, points: number, duration: number) =>
    new RateLimiterPostgres({
      storeClient: pool,
      storeType: 'pool',
      tableName: 'rate_limits',
      tableCreated: true,
      clearExpiredByTimeout: false,
      keyPrefix,
      points,
      duration,
    });
  const common = [limiter('burst', options.burst, MINUTE), limiter('sustained', options.sustained, HOUR)];
  const windows: Record<Budget, RateLimiterPostgres[]> = {
    key: common,
    address: common,
    wizard: [limiter('wizard', WIZARD_PER_DAY, DAY)],
  };
  return {
    async consume(budget, who, reply) {
      const taken: { limit: number; result: RateLimiterRes }[] = [];
      for (const window of windows[budget]) {
        const limit = window.points;
        const { refused, result } = await take(window, who);
        if (refused) {
          // A request that a short window refuses does not count in longer ones, so a client that sends too fast is
          // blocked for a minute only.
          tell(reply, limit, result);
          throw errors.throttled(Math.max(1, secondsOf(result)));
        }
        taken.push({ limit, result });
      }
      const [tightest] = taken.toSorted((a, b) => a.result.remainingPoints - b.result.remainingPoints);
      if (tightest) tell(reply, tightest.limit, tightest.result);
    },
  };
}
