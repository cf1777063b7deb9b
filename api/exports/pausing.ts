import { z } from 'zod';
import { setExportPaused } from '../batch-exports/pausing.ts';
import { findsExport, PLACES, WRITE } from '../batch-exports/places.ts';
import type { ApiDependencies, App } from '../dependencies.ts';

const answer = z.object({ paused: z.boolean() });

/** Pausing exports and letting them go on. */
export function pausingRoutes(app: App, deps: ApiDependencies): void {
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
        await setExportPaused(deps, request, true);
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
        await setExportPaused(deps, request, false, request.body.backfill);
        return { paused: false };
      },
    );
  }
}
