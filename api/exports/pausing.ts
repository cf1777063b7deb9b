import { z } from 'zod';
import { pauseExport, unpauseExport } from '../../exports/commands/pause.ts';
import { keyOf } from '../../exports/rows/batch-exports.ts';
import { actorOf } from '../actor.ts';
import type { App, ExportRouteDependencies } from '../dependencies.ts';
import { findsExport } from './find-export.ts';
import { PLACES, WRITE } from './places.ts';

const answer = z.object({ paused: z.boolean() });

/** Pausing exports and letting them go on. */
export function pausingRoutes(app: App, deps: ExportRouteDependencies): void {
  const find = findsExport(deps.pool, (id) => `BatchExport ID '${id}' not found.`);
  for (const { prefix, params, access, of } of PLACES) {
    const schema = {
      tags: ['batch exports'],
      params: params.extend({ id: z.string() }),
      response: { 200: answer },
    };

    app.post(
      `${prefix}:id/pause/`,
      {
        config: { access: { scope: WRITE, ...access } },
        preValidation: find,
        schema: {
          ...schema,
          summary: `Pause a batch export ${of}`,
          description: 'Runs that are under way come to their end; no further one is begun.',
        },
      },
      async (request) => {
        await pauseExport(deps, actorOf(request), keyOf(request.batchExport));
        return { paused: true };
      },
    );

    app.post(
      `${prefix}:id/unpause/`,
      {
        config: { access: { scope: WRITE, ...access } },
        preValidation: find,
        schema: {
          ...schema,
          summary: `Let a batch export ${of} go on`,
          body: z.object({
            backfill: z
              .boolean()
              .default(false)
              .meta({ description: 'Whether to export what was missed while it was paused.' }),
          }),
        },
      },
      async (request) => {
        const { batchExport, body } = request;
        await unpauseExport(deps, actorOf(request), batchExport, { backfill: body.backfill });
        return { paused: false };
      },
    );
  }
}
