import type { FastifyReply } from 'fastify';
import { RateLimiterPostgres, type RateLimiterRes } from 'rate-limiter-flexible';
import type { Pool } from '../db/pool.ts';
import { errors } from './errors.ts';

export interface RateLimit {
  /** Takes one request from the key's budget, or refuses with 429. */
  consume(keyId: string, reply: FastifyReply): Promise<void>;
}

export interface RateLimitOptions {
  enabled: boolean;
  /** Requests per minute. */
  burst: number;
  /** Requests per hour. */
  sustained: number;
}

const UNLIMITED: RateLimit = { consume: async () => undefined };

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
  const windows = [limiter('burst', options.burst, 60), limiter('sustained', options.sustained, 3600)];
  return {
    async consume(keyId, reply) {
      const results: { limit: number; result: RateLimiterRes; refused: boolean }[] = [];
      for (const window of windows) {
        try {
          results.push({ limit: window.points, result: await window.consume(keyId), refused: false });
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
