import { z } from 'zod';
import { reading } from '../../db/reading.ts';
import { Turns } from '../../db/turns.ts';
import { previewFunction } from '../../functions/commands/preview.ts';
import { refusing } from '../../functions/commands/refusals.ts';
import { runningContent } from '../../functions/reads/running-content.ts';
import { findFunction } from '../../functions/rows/functions.ts';
import { mockedAnswers } from '../../functions/rules/mocks.ts';
import { refuse } from '../../refusals.ts';
import { isUuid } from '../../values/uuid.ts';
import { clientSignal } from '../asker.ts';
import type { App } from '../dependencies.ts';
import { freeForm, timestamp } from '../fields.ts';
import { instantOf, millisecondsOf, moment } from '../moment.ts';
import { compileAsked } from './configuration.ts';
import type { FunctionRouteDependencies } from './dependencies.ts';
import { tried } from './invocations.ts';
import { PREFIX, WRITE } from './resource.ts';

const MOST_EVENTS = 500_000;

const body = z.object({
  configuration: freeForm.optional().meta({
    description:
      'The function with a change. Fields that are left out are those of the stored function. Without a configuration, the ' +
      'stored function itself is shown.',
  }),
  use_draft: z.boolean().default(false).meta({ description: 'Compares the draft with what runs.' }),
  after: moment.meta({ description: 'Looks at events from this time on, such as `-7d`. Default: `-24h`.' }),
  before: moment.meta({ description: 'Looks at events before this time. Default: now.' }),
  max_events: z.int().min(1).max(MOST_EVENTS).default(100_000).meta({
    description: 'The most events that are looked at, the newest first.',
  }),
  sample: z.int().min(0).max(20).default(5).meta({ description: 'How many matching events are tried.' }),
  mock_responses: mockedAnswers,
});

const counts = z
  .object({
    matched: z.int().meta({ description: 'Events that the function would run for, before masking.' }),
    invocations: z.int().meta({ description: 'How many times it would run: for each mapping once.' }),
    masked: z.int().meta({ description: 'How many of the invocations masking leaves out.' }),
    failed: z.int().meta({ description: 'Events whose filters or whose key of masking fail.' }),
    errors: z.array(z.object({ message: z.string(), events: z.int() })),
  })
  .meta({ id: 'FunctionPreviewCounts' });

const trial = tried.omit({ event: true }).extend({
  masked: z.boolean().meta({
    description: 'Masking leaves the event out. The trial shows what would be sent otherwise.',
  }),
});

const preview = z
  .object({
    after: timestamp,
    before: timestamp,
    searched: z.object({
      events: z.int().meta({ description: 'How many events were looked at.' }),
      too_large: z
        .int()
        .meta({ description: 'Events that were left out, because they are larger than 1 MB.' }),
      is_complete: z.boolean().meta({
        description:
          'False: events before `oldest` were not looked at, because of the time or of `max_events`.',
      }),
      oldest: timestamp.nullable(),
    }),
    proposed: counts,
    running: counts.nullable().meta({ description: 'Null: there is no other version to compare with.' }),
    matches: z
      .object({ both: z.int(), only_proposed: z.int(), only_running: z.int() })
      .nullable()
      .meta({ description: 'How many events both versions would run for, and how many only one of them.' }),
    changed_secrets: z.array(z.string()).nullable().meta({
      description:
        'The secret inputs whose values differ, such as `inputs.key`. The sample hides values, so it does not show them.',
    }),
    sample: z.array(
      z.object({
        event: z.object({
          uuid: z.string(),
          event: z.string(),
          distinct_id: z.string(),
          timestamp,
        }),
        proposed: trial,
        running: trial.nullable(),
        differences: z
          .array(
            z.object({
              mapping: z.string().nullable(),
              path: z.string().meta({ description: 'Such as `fetches[0].body.text`.' }),
              running: z.unknown().optional(),
              proposed: z.unknown().optional(),
            }),
          )
          .nullable()
          .meta({ description: 'Where the two versions differ, at most 100 places.' }),
      }),
    ),
    is_sample_complete: z.boolean(),
    warnings: z.array(z.string()).meta({ description: 'What the compiler says of the proposed version.' }),
    duration_ms: z.int(),
  })
  .meta({ id: 'FunctionPreview' });

/** Adds the route that shows what a function would do with stored events. */
export function previewRoutes(app: App, deps: FunctionRouteDependencies): void {
  const { pool, readingPool } = deps;
  // A preview may read and compute for many seconds.
  const turns = new Turns({ atOnce: 2, perAsker: 1, waitingPerAsker: 5, patience: 30_000 });

  app.post(
    `${PREFIX}:id/preview/`,
    {
      config: { access: { scope: WRITE } },
      schema: {
        tags: ['functions'],
        summary: 'Show what a function would do with stored events',
        description:
          'Counts the events of a time range that the function would run for and what masking would leave out, and shows for ' +
          'a sample what would be sent. A change is compared with the version that runs: both see the same events, clock, ' +
          'random numbers and answers. Nothing is sent or stored. An id that does not exist, such as `new`, previews a ' +
          'function that is not stored.',
        params: z.object({ project_id: z.string(), id: z.string() }),
        body,
        response: { 200: preview },
      },
    },
    async (request, reply) => {
      const began = performance.now();
      const { project, params, body: asked } = request;
      const signal = clientSignal(reply);
      const asker = { projectId: project.id, signal };
      const before = asked.before ?? new Date().toISOString();
      const after = asked.after ?? (instantOf('-24h') as string);
      if (millisecondsOf(after) >= millisecondsOf(before)) {
        throw refuse.invalid('after', 'The beginning of the time range must lie before its end.');
      }
      const current = isUuid(params.id)
        ? await findFunction(pool, { projectId: project.id, functionId: params.id })
        : undefined;
      if (!current && !asked.configuration) {
        if (isUuid(params.id)) throw refuse.absent();
        throw refuse.invalid('configuration', 'Required, because there is no stored function with this id.', {
          code: 'required',
        });
      }
      return turns.take(asker, async () => {
        const running = current ? await refusing(() => runningContent(deps.keyring, current)) : null;
        const given =
          asked.configuration || asked.use_draft
            ? await compileAsked(deps, asked, { ...asker, current }, signal)
            : null;
        const found = await previewFunction(
          { ...deps, read: (work) => reading(readingPool, asker, work) },
          {
            type: (given ?? (current as NonNullable<typeof current>)).type,
            proposed: (given?.compiled ?? running) as NonNullable<typeof running>,
            running: given ? running : null,
            facts: {
              project: { id: project.id, name: project.name },
              site: deps.publicUrl,
              source: { id: params.id, name: (asked.configuration?.name as string) ?? current?.name ?? null },
            },
            ...{ after, before, mostEvents: asked.max_events, sample: asked.sample },
            answers: asked.mock_responses,
          },
          signal,
        );
        return {
          ...{ after: isoOf(after), before: isoOf(before) },
          ...found,
          warnings: (given?.compiled ?? current)?.warnings ?? [],
          duration_ms: Math.round(performance.now() - began),
        };
      });
    },
  );
}

const isoOf = (text: string) => new Date(millisecondsOf(text)).toISOString();
