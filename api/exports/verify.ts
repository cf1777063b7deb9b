import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { findRun, listRuns } from '../../exports/rows/run-lists.ts';
import { VERDICTS } from '../../exports/rules/verify-report.ts';
import type { IntervalText } from '../../intervals/index.ts';
import { TooManyVerificationsError, VerifyError } from '../../schedules/exports/verify.ts';
import { instantText } from '../../values/dates.ts';
import { intervalChoice, pickCompleteInterval } from '../batch-exports/pick-interval.ts';
import { findsExport, keyOf, PLACES, READ } from '../batch-exports/places.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { timestamp } from '../fields.ts';

const WAIT_SECONDS = 20;
const LONGEST_WAIT_SECONDS = 50;
const RETRY_SECONDS = 5;
const CROWD_RETRY_SECONDS = 60;
/** Earlier than any interval, for asking for the newest run of all. */
const EVER = '-infinity';

const body = z.object({
  ...intervalChoice,
  run_id: z.uuid().nullish().meta({ description: 'The interval of this run instead.' }),
  wait_seconds: z.int().min(1).max(LONGEST_WAIT_SECONDS).default(WAIT_SECONDS).meta({
    description: 'How long to wait for the report before the answer is 202.',
  }),
});

const digest = z.object({ bytes: z.int(), sha256: z.string() });
const interval = { data_interval_start: timestamp.nullable(), data_interval_end: timestamp };
const report = z
  .object({
    ...interval,
    verdict: z.enum(VERDICTS).meta({
      description:
        '`same`: what is there is what was exported, and what the database has. `expired`: the database does not have it any more.',
    }),
    problems: z.array(z.string()).meta({ description: 'A sentence for each thing that is wrong.' }),
    run_id: z.uuid().nullable().meta({ description: 'The completed run that it was compared with.' }),
    source: z.object({
      state: z.enum(['read', 'changing', 'expired', 'unread']),
      rows: z.int().nullable(),
      hash: z.string().nullable(),
    }),
    destination: z.object({
      rows: z.int().nullable(),
      files: z.array(
        z.object({
          key: z.string(),
          state: z.enum(['same', 'missing', 'different']),
          expected: digest,
          found: digest.nullable(),
        }),
      ),
    }),
    manifest: z
      .object({ run_id: z.string(), rows: z.int(), bytes: z.int(), hash: z.string(), files: z.int() })
      .nullable(),
    checked_at: timestamp,
  })
  .meta({ id: 'BatchExportVerification' });
const underWay = z
  .object({ ...interval, state: z.literal('running') })
  .meta({ id: 'BatchExportVerificationUnderWay' });

/** Whether what is at the destination is what was exported. */
export function verifyRoutes(app: App, { pool, schedules }: ApiDependencies): void {
  const find = findsExport(pool);

  const intervalOf = async (
    { batchExport: row }: FastifyRequest,
    { run_id: runId, ...choice }: z.output<typeof body>,
  ): Promise<IntervalText> => {
    if (runId) {
      if (choice.start_at || choice.end_at) {
        const detail = "'run_id' goes without 'start_at' and 'end_at'";
        throw errors.validation('invalid_input', detail, 'run_id');
      }
      const run = await findRun(pool, { projectId: row.project_id, runId });
      if (run?.batch_export_id !== row.id) {
        throw errors.validation('does_not_exist', 'This batch export has no such run.', 'run_id');
      }
      return textsOf(run);
    }
    if (!choice.start_at && !choice.end_at) {
      const { rows } = await listRuns(pool, {
        ...{ ...keyOf(row), ordering: 'data_interval_start', ascending: false },
        ...{ from: EVER, to: new Date().toISOString(), statuses: ['Completed'], limit: 1 },
      });
      if (rows[0]) return textsOf(rows[0]);
    }
    const { start, end } = pickCompleteInterval(row, choice, Date.now());
    return { start: exact(start), end: exact(end) };
  };

  for (const { prefix, params, access, of } of PLACES) {
    app.post(
      `${prefix}:id/verify/`,
      {
        config: { access: { scope: READ, ...access } },
        preValidation: find,
        schema: {
          tags: ['batch exports'],
          summary: `Compare what a batch export ${of} left at its destination with its manifest and the database`,
          description:
            'For the newest interval that was exported, or the one that is named. 202: it takes longer; ask again.',
          params: params.extend({ id: z.string() }),
          body,
          response: { 200: report, 202: underWay },
        },
      },
      async (request, reply) => {
        const wanted = await intervalOf(request, request.body);
        const seconds = schedules.isReachable() ? request.body.wait_seconds : 1;
        const waitMilliseconds = seconds * 1000;
        const found = await schedules
          .within(waitMilliseconds, () =>
            schedules.exports.verify(request.batchExport, wanted, { waitMilliseconds }),
          )
          .catch((error) => {
            if (error instanceof TooManyVerificationsError) {
              throw errors.tooMany(error.message, CROWD_RETRY_SECONDS);
            }
            if (error instanceof VerifyError) throw errors.validation('invalid_input', error.message, null);
            request.log.warn({ err: error }, 'a verification could not be asked for');
            throw errors.temporalAway(RETRY_SECONDS);
          });
        const { start, end } = wanted;
        const named = {
          data_interval_start: start === null ? null : instantText(start),
          data_interval_end: instantText(end),
        };
        if (!found) {
          if (!schedules.isReachable()) throw errors.temporalAway(RETRY_SECONDS);
          return reply
            .code(202)
            .header('retry-after', String(RETRY_SECONDS))
            .send({ ...named, state: 'running' as const });
        }
        const { interval: _interval, ...rest } = found;
        return { ...named, ...rest };
      },
    );
  }
}

/** As all that verify the same interval name it. */
const exact = (instant: number) => new Date(instant).toISOString();

function textsOf(run: { data_interval_start: string | null; data_interval_end: string }): IntervalText {
  const { data_interval_start: start, data_interval_end: end } = run;
  return { start: start === null ? null : exact(Date.parse(start)), end: exact(Date.parse(end)) };
}
