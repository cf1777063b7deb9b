import { z } from 'zod';
import { intervalToVerify, verifyExport } from '../../exports/commands/verify.ts';
import { VERDICTS } from '../../exports/rules/verify-report.ts';
import { instantText } from '../../values/dates.ts';
import { actorOf } from '../actor.ts';
import type { App, ExportRouteDependencies } from '../dependencies.ts';
import { timestamp } from '../fields.ts';
import { findsExport } from './find-export.ts';
import { intervalChoice } from './interval-choice.ts';
import { PLACES, READ } from './places.ts';

const WAIT_SECONDS = 20;
const LONGEST_WAIT_SECONDS = 50;
const RETRY_SECONDS = 5;

const body = z.object({
  ...intervalChoice,
  run_id: z.guid().nullish().meta({
    description: 'Chooses the interval of this run. Do not combine it with `start_at` and `end_at`.',
  }),
  wait_seconds: z.int().min(1).max(LONGEST_WAIT_SECONDS).default(WAIT_SECONDS).meta({
    description: 'How many seconds to wait for the report. After that the answer is 202.',
  }),
});

const digest = z.object({ bytes: z.int(), sha256: z.string() });
const interval = { data_interval_start: timestamp.nullable(), data_interval_end: timestamp };
const report = z
  .object({
    ...interval,
    verdict: z.enum(VERDICTS).meta({
      description:
        '`same`: the destination has what the run exported and what the database has. `differs`: it does not. `missing`: ' +
        'the destination has nothing of the interval. `expired`: the destination has what the run exported, but the ' +
        'database has deleted the events. `unknown`: the destination could not be read, or members of cohorts may have changed.',
    }),
    problems: z.array(z.string()).meta({ description: 'A sentence for each problem.' }),
    run_id: z
      .guid()
      .nullable()
      .meta({ description: 'The completed run that the destination was compared with.' }),
    source: z.object({
      state: z.enum(['read', 'changing', 'members', 'once', 'expired', 'unread']),
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

/** Adds the route that verifies what an export left at its destination. */
export function verifyRoutes(app: App, deps: ExportRouteDependencies): void {
  const find = findsExport(deps.pool);

  for (const { prefix, params, access, of } of PLACES) {
    app.post(
      `${prefix}:id/verify/`,
      {
        config: { access: { scope: READ, ...access } },
        preValidation: find,
        schema: {
          tags: ['batch exports'],
          summary: `Verify an interval of a batch export ${of}`,
          description:
            'Reads the destination again and compares it with the manifest, the run and the database. Verifies the ' +
            'newest exported interval, or the one that the body names. An answer of 202 means that this takes longer: ' +
            'ask again to join the same verification.',
          params: params.extend({ id: z.string() }),
          body,
          response: { 200: report, 202: underWay },
        },
      },
      async (request, reply) => {
        const { batchExport, body: wanted } = request;
        const interval = await intervalToVerify(deps, batchExport, wanted);
        const found = await verifyExport(deps, actorOf(request), batchExport, interval, {
          waitMilliseconds: wanted.wait_seconds * 1000,
        });
        const { start, end } = interval;
        const named = {
          data_interval_start: start === null ? null : instantText(start),
          data_interval_end: instantText(end),
        };
        if (!found) {
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
