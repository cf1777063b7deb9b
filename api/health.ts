import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { migrationState } from '../db/migrate.ts';
import type { ApiDependencies, App } from './dependencies.ts';
import type { Flags } from './flags/dependencies.ts';

/** How long a check waits for Postgres, in milliseconds. */
const PATIENCE = 3_000;

const readiness = z.object({
  status: z.enum(['ok', 'unavailable']),
  checks: z.object({
    postgres: z.enum(['ok', 'unavailable']),
    migrations: z.enum(['ok', 'missing', 'unknown']),
    temporal: z.enum(['ok', 'unavailable']),
    draining: z.boolean(),
  }),
});

const flagReadiness = z.object({
  status: z.enum(['ok', 'unavailable']),
  checks: z.object({
    postgres: z.enum(['ok', 'unavailable']),
    flags: z.enum(['ok', 'last known', 'unavailable']),
    draining: z.boolean(),
  }),
});

/**
 * Adds the health checks. `/_livez` says that the process runs. `/_readyz` says whether it can serve requests, which
 * depends on Postgres and its migrations. It also reports Temporal, without which capture and most of the API work.
 * `/_readyz/flags` says whether it can tell flags, for which what was known last suffices.
 */
export function healthRoutes(
  app: App,
  { lanePool: pool, listener, schedules, flags, isPrepared, isDraining }: ApiDependencies & { flags: Flags },
): void {
  for (const path of ['/_livez', '/_health']) {
    app.get(
      path,
      {
        schema: {
          tags: ['health'],
          summary: 'Check that the process runs',
          response: { 200: z.object({ status: z.literal('ok') }) },
        },
      },
      async () => ({ status: 'ok' as const }),
    );
  }

  app.get(
    '/_readyz',
    {
      schema: {
        tags: ['health'],
        summary: 'Check that the process can serve requests',
        response: { 200: readiness, 503: readiness },
      },
    },
    async (_request, reply) => answer(reply),
  );

  app.get(
    '/_readyz/flags',
    {
      schema: {
        tags: ['health'],
        summary: 'Check that the process can evaluate feature flags',
        description:
          'Flags are evaluated while Postgres is away, from the definitions that were known last. Asks nobody, so it always answers at once.',
        response: { 200: flagReadiness, 503: flagReadiness },
      },
    },
    async (_request, reply) => {
      const isThere = isPrepared() && listener.isListening();
      const ready = flags.canAnswer() && !isDraining();
      reply.code(ready ? 200 : 503);
      if (!ready) reply.header('retry-after', '2');
      const told = isThere
        ? ('ok' as const)
        : flags.canAnswer()
          ? ('last known' as const)
          : ('unavailable' as const);
      return {
        status: ready ? ('ok' as const) : ('unavailable' as const),
        checks: {
          postgres: isThere ? ('ok' as const) : ('unavailable' as const),
          flags: told,
          draining: isDraining(),
        },
      };
    },
  );

  async function answer(reply: FastifyReply): Promise<z.output<typeof readiness>> {
    const state = await Promise.race([
      migrationState(pool).catch(() => undefined),
      pause(PATIENCE, undefined, { ref: false }),
    ]);
    const migrations = !state ? 'unknown' : state.applied >= state.known ? 'ok' : 'missing';
    // Another process may have applied the migrations a moment ago. This process serves when it has noticed.
    const ready = migrations === 'ok' && isPrepared() && !isDraining();
    reply.code(ready ? 200 : 503);
    if (!ready) reply.header('retry-after', '2');
    return {
      status: ready ? 'ok' : 'unavailable',
      checks: {
        postgres: state ? 'ok' : 'unavailable',
        migrations,
        temporal: schedules.isReachable() ? 'ok' : 'unavailable',
        draining: isDraining(),
      },
    };
  }
}
