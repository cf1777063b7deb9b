import { z } from 'zod';
import { reading } from '../../db/reading.ts';
import { type Read, sampleEvent } from '../../functions/commands/sample-event.ts';
import { tryFunction } from '../../functions/commands/try-function.ts';
import { findFunction, type ShownFunctionRow } from '../../functions/rows/functions.ts';
import { LOG_LEVELS } from '../../functions/rules/logs.ts';
import { mockedAnswers } from '../../functions/rules/mocks.ts';
import { isUuid } from '../../values/uuid.ts';
import { clientSignal } from '../asker.ts';
import type { App } from '../dependencies.ts';
import { freeForm, timestamp } from '../fields.ts';
import { compileAsked } from './configuration.ts';
import type { FunctionRouteDependencies } from './dependencies.ts';
import { PREFIX, WRITE } from './resource.ts';

export const trialStatus = z.enum(['success', 'error', 'skipped']);

export const invocation = z
  .object({
    mapping: z
      .string()
      .nullable()
      .meta({ description: 'The name of the mapping. Null: the function has none.' }),
    status: trialStatus,
    result: z.unknown(),
    errors: z.array(z.string()),
    fetches: z.array(
      z.object({
        url: z.string(),
        method: z.string(),
        headers: z.record(z.string(), z.string()),
        body: z.string().nullable(),
        signed: z.enum(['standard_webhooks', 'aws_sigv4']).nullable().meta({
          description:
            'How the request is signed when it is sent. The headers of the signature are not shown.',
        }),
        mocked: z.boolean(),
        duration_ms: z.int(),
        response: z.object({ status: z.int(), body: z.unknown() }).nullable(),
        error: z.string().nullable(),
      }),
    ),
    captured: z
      .array(z.unknown())
      .meta({ description: 'What the program asked to capture. It is not stored.' }),
    steps: z.int(),
    memory: z.int().meta({ description: 'The most bytes that the program held.' }),
  })
  .meta({ id: 'FunctionTestInvocation' });

export const tried = z
  .object({
    status: trialStatus.meta({ description: '`skipped`: the filters do not match the event.' }),
    result: z
      .unknown()
      .meta({ description: 'What the program returned. For a transformation: the event, or null.' }),
    errors: z.array(z.string()),
    logs: z.array(z.object({ level: z.enum(LOG_LEVELS), timestamp, message: z.string() })),
    invocations: z.array(invocation).meta({ description: 'One, or one for each mapping.' }),
    event: freeForm.meta({ description: 'The event with which the function was tried.' }),
    duration_ms: z.int(),
  })
  .meta({ id: 'FunctionTest' });

const body = z
  .object({
    configuration: freeForm.optional().meta({
      description:
        'The function. Fields that are left out are those of the stored function, if there is one. Required unless ' +
        '`use_draft` is true.',
    }),
    use_draft: z.boolean().default(false).meta({
      description:
        'True: tries the draft of the stored function, with its secrets, in place of `configuration`.',
    }),
    globals: freeForm
      .nullable()
      .optional()
      .meta({ description: 'What the program sees. It has at least an `event`.' }),
    clickhouse_event: freeForm.nullable().optional().meta({
      description: 'An event as a row, in which `properties` and `person_properties` are JSON texts.',
    }),
    event_id: z.guid().nullable().optional().meta({ description: 'The uuid of a stored event to try with.' }),
    use_newest_event: z
      .boolean()
      .default(false)
      .meta({ description: 'Tries with the newest stored event that the filters match.' }),
    mock_async_functions: z.boolean().default(true).meta({
      description:
        'True: requests are shown and not sent, and each is answered with 200 and an empty object.',
    }),
    mock_responses: mockedAnswers,
    invocation_id: z.guid().nullable().optional(),
  })
  .meta({ anyOf: [{ required: ['configuration'] }, { required: ['use_draft'] }] });

/** Adds the route that tries a function, stored or not, with one event. */
export function invocationRoutes(app: App, deps: FunctionRouteDependencies): void {
  const { pool, readingPool } = deps;

  app.post(
    `${PREFIX}:id/invocations/`,
    {
      config: { access: { scope: WRITE } },
      schema: {
        tags: ['functions'],
        summary: 'Try a function with one event',
        description:
          'Runs the function once, under the limits of real runs, and stores nothing. An id that does not exist, such as ' +
          '`new`, tries a function that is not stored.',
        params: z.object({ project_id: z.string(), id: z.string() }),
        body,
        response: { 200: tried },
      },
    },
    async (request, reply) => {
      const { project, params, body: asked } = request;
      const signal = clientSignal(reply);
      const key = { projectId: project.id, functionId: params.id };
      const current: ShownFunctionRow | undefined = isUuid(params.id)
        ? await findFunction(pool, key)
        : undefined;
      const { type, compiled } = await compileAsked(deps, asked, { projectId: project.id, current }, signal);
      const site = deps.publicUrl;
      const facts = {
        project: { id: project.id, name: project.name },
        site,
        source: { id: params.id, name: (asked.configuration?.name as string) ?? current?.name ?? null },
      };
      const frame = { now: Date.now(), seed: Math.floor(Math.random() * 2 ** 32) };
      const read: Read = (work) => reading(readingPool, { projectId: project.id, signal }, work);
      const globals = await sampleEvent(
        deps,
        read,
        { ...asked, type, facts, filters: compiled.filters, mappings: compiled.mappings, frame },
        signal,
      );
      // A program of batches is tried with one of a single event.
      const { event, person = null, groups = {} } = globals;
      const seen = current?.delivery?.batch ? { items: [{ event, person, groups }], ...globals } : globals;
      const trial = { projectId: project.id, type, content: compiled, globals: seen, frame };
      const result = await tryFunction(
        { ...deps, read },
        { ...trial, isMocked: asked.mock_async_functions, answers: asked.mock_responses },
        signal,
      );
      return { ...result, event: globals.event as Record<string, unknown> };
    },
  );
}
