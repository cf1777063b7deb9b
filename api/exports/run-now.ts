import { z } from 'zod';
import { runExport } from '../../exports/commands/run-now.ts';
import { actorOf } from '../actor.ts';
import { clientSignal } from '../asker.ts';
import type { App, ExportRouteDependencies } from '../dependencies.ts';
import { timestamp } from '../fields.ts';
import { findsExport } from './find-export.ts';
import { intervalChoice } from './interval-choice.ts';
import { PLACES, WRITE } from './places.ts';

const body = z.object({
  ...intervalChoice,
  partial: z
    .boolean()
    .optional()
    .meta({
      description:
        'Whether to export the current interval up to now. When the interval has ended, the schedule replaces these files. ' +
        'Without `partial`, this happens if the body names no interval and the last finished one has no rows.',
    }),
});
const started = z.object({
  data_interval_start: timestamp,
  data_interval_end: timestamp,
  workflow_id: z.string(),
  workflow_run_id: z.string(),
  temporal_url: z.string(),
});

/** Adds the route that runs an export now, whatever its schedule does. */
export function runNowRoutes(app: App, deps: ExportRouteDependencies): void {
  const find = findsExport(deps.pool);
  for (const { prefix, params, access, of } of PLACES) {
    app.post(
      `${prefix}:id/run/`,
      {
        config: { access: { scope: WRITE, ...access } },
        preValidation: find,
        schema: {
          tags: ['batch exports'],
          summary: `Run a batch export ${of} now`,
          description:
            'Exports the last finished interval, or the one that the body names. If the last finished interval has no ' +
            'rows, exports the current interval up to now, so that the first file comes at once. If an interval was ' +
            'exported before, the new run replaces what is there.',
          params: params.extend({ id: z.string() }),
          body,
          response: { 201: started },
        },
      },
      async (request, reply) => {
        const { batchExport, body: wanted } = request;
        const { interval, workflowId, workflowRunId } = await runExport(
          deps,
          actorOf(request),
          batchExport,
          wanted,
          clientSignal(reply),
        );
        reply.code(201);
        return {
          data_interval_start: interval.start,
          data_interval_end: interval.end,
          workflow_id: workflowId,
          workflow_run_id: workflowRunId,
          temporal_url: deps.temporal.runUrl({ workflow_id: workflowId, workflow_run_id: workflowRunId }),
        };
      },
    );
  }
}
