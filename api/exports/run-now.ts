import { z } from 'zod';
import { transaction } from '../../db/pool.ts';
import { isPartEnd } from '../../exports/rows/parts.ts';
import { cadenceOfRow } from '../../exports/rules/cadence.ts';
import { intervalAt } from '../../intervals/index.ts';
import { audit } from '../../tenancy/audit.ts';
import { instantText } from '../../values/dates.ts';
import { actorOf } from '../actor.ts';
import { intervalChoice, pickCompleteInterval } from '../batch-exports/pick-interval.ts';
import { findsExport, PLACES, placeOf, WRITE } from '../batch-exports/places.ts';
import { hasRows } from '../batch-exports/preview.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { timestamp } from '../fields.ts';

const RETRY_SECONDS = 10;
/** Milliseconds that Temporal has for beginning a run. */
const PATIENCE = 5_000;

/** A part is known by its end, which is none of any interval. */
const endOfPart = (now: number) => (isPartEnd(new Date(now).toISOString()) ? now : now - 1);

const body = z.object({
  ...intervalChoice,
  partial: z.boolean().optional().meta({
    description:
      'Whether to export the current interval up to now instead; its files are replaced when it is over. Default: if there is nothing to export in the last interval that is over.',
  }),
});
const started = z.object({
  data_interval_start: timestamp,
  data_interval_end: timestamp,
  workflow_id: z.string(),
  workflow_run_id: z.string(),
  temporal_url: z.string(),
});

/** Runs that do not wait for their time. */
export function runNowRoutes(app: App, deps: ApiDependencies): void {
  const { pool, schedules } = deps;
  const find = findsExport(pool);
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
            'For the last interval that is over, or the one that is named. If there is nothing in the last one, for the current one up to now: the first file does not wait. An interval that was exported before is exported again in its place.',
          params: params.extend({ id: z.string() }),
          body,
          response: { 201: started },
        },
      },
      async (request, reply) => {
        const { batchExport: row, body: wanted } = request;
        const now = Date.now();
        if (wanted.partial && (wanted.start_at || wanted.end_at)) {
          throw errors.validation(
            'invalid_input',
            "'partial' is the current interval up to now: it goes without 'start_at' and 'end_at'",
            'partial',
          );
        }
        const complete = pickCompleteInterval(row, wanted, now);
        const named = Boolean(wanted.start_at || wanted.end_at);
        const partial = wanted.partial ?? (!named && !(await hasRows(deps, row, complete)));
        const interval = partial
          ? { start: intervalAt(cadenceOfRow(row), now).start, end: endOfPart(now) }
          : complete;
        const [start, end] = [instantText(interval.start), instantText(interval.end)];
        const { workflowId, workflowRunId } = await schedules
          .within(PATIENCE, () => schedules.exports.startRun(row, { start, end }))
          .catch((error) => {
            request.log.warn({ err: error }, 'a run could not be started');
            throw errors.temporalAway(RETRY_SECONDS);
          });
        await transaction(pool, (client) =>
          audit(client, actorOf(request), {
            scope: 'BatchExport',
            itemId: row.id,
            activity: 'started',
            ...placeOf(request, row.project_id),
            detail: { data_interval_start: start, data_interval_end: end },
          }),
        );
        reply.code(201);
        return {
          data_interval_start: start,
          data_interval_end: end,
          workflow_id: workflowId,
          workflow_run_id: workflowRunId,
          temporal_url: schedules.exports.runUrl({ workflow_id: workflowId, workflow_run_id: workflowRunId }),
        };
      },
    );
  }
}
