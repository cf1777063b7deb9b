import { z } from 'zod';
import { pauseExport, unpauseExport } from '../../exports/commands/pause.ts';
import { keyOf } from '../../exports/rows/batch-exports.ts';
import { actorOf } from '../actor.ts';
import type { App, ExportRouteDependencies } from '../dependencies.ts';
import { findsExport } from './find-export.ts';
import { PLACES, WRITE } from './places.ts';

const answer = z.object({ paused: z.boolean() });

/** Adds the routes that pause and resume exports. */
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
          description: 'Runs in progress continue. The schedule starts no further runs.',
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
          summary: `Resume a batch export ${of}`,
          body: z.object({
            backfill: z.boolean().default(false).meta({
              description:
                'Whether to export the intervals that the pause left out, and those that failed shortly before it.',
            }),
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
