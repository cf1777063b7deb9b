import type { FastifyReply } from 'fastify';
import { RateLimiterPostgres, type RateLimiterRes } from 'rate-limiter-flexible';
import type { Pool } from '../db/pool.ts';
import { errors } from './errors.ts';

/** What is counted together: the requests of a key, those of a key to the wizard, those of a stranger's address. */
export type Budget = 'key' | 'wizard' | 'address';

export interface RateLimit {
  /** Takes one request from the budget, or refuses with 429. */
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

/** Counts in Postgres, so that the limit holds across API processes. */
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
      const results: { limit: number; result: RateLimiterRes; refused: boolean }[] = [];
      for (const window of windows[budget]) {
        try {
          results.push({ limit: window.points, result: await window.consume(who), refused: false });
        } catch (reason) {
          if (reason instanceof Error) throw reason;
          results.push({ limit: window.points, result: reason as RateLimiterRes, refused: true });
        }
      }
      const [tightest] = results.toSorted((a, b) => a.result.remainingPoints - b.result.remainingPoints);
      if (tightest) {
        reply.header('x-ratelimit-limit', tightest.limit);
        reply.header('x-ratelimit-remaining', tightest.result.remainingPoints);
        reply.header('x-ratelimit-reset', Math.ceil(tightest.result.msBeforeNext / 1000));
      }
      const waits = results.filter((one) => one.refused).map((one) => one.result.msBeforeNext);
      if (waits.length > 0) throw errors.throttled(Math.max(1, Math.ceil(Math.max(...waits) / 1000)));
    },
  };
}
