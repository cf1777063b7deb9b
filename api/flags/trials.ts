import { z } from 'zod';
import { reading } from '../../db/reading.ts';
import { type Asker, Turns } from '../../db/turns.ts';
import { radiusOf } from '../../flags/commands/blast-radius.ts';
import { type TryDependencies, tryFlag } from '../../flags/commands/try-flag.ts';
import { createTrials } from '../../flags/trial/trials.ts';
import { askerOf } from '../asker.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { freeForm } from '../fields.ts';
import { serialOf } from '../serial.ts';
import { type Flags, flagCommands } from './dependencies.ts';
import { FLAGS_PREFIX } from './feature-flags.ts';
import { changeOf, flagInput } from './flag-schema.ts';

const value = z.union([z.boolean(), z.string()]);
const counted = z.array(z.object({ value, failed: z.boolean(), count: z.int() }));
const outcome = z.object({
  value,
  failed: z.boolean(),
  reason: z.string(),
  condition_index: z.int().nullable(),
});

const trial = z
  .object({
    searched: z.object({
      persons: z.int(),
      distinct_ids: z.int(),
      too_large: z
        .int()
        .meta({ description: 'Persons that were left out because of the size of their properties.' }),
      is_complete: z.boolean().meta({
        description: 'False: not all persons were looked at, because of the time or of `max_distinct_ids`.',
      }),
    }),
    proposed: counted.meta({ description: 'How many distinct ids would get each value.' }),
    running: counted.nullable().meta({ description: 'How many get it now. Null: the flag is new.' }),
    changed: z.int().meta({ description: 'How many would get another value than now.' }),
    changes: z.array(z.object({ from: value, to: value, count: z.int() })),
    sample: z
      .array(
        z.object({
          distinct_id: z.string(),
          person_id: z.guid(),
          proposed: outcome,
          running: outcome.nullable(),
        }),
      )
      .meta({ description: 'Some of them, first those whose value would change.' }),
    rests_on: z.array(z.string()).meta({ description: 'What the answer rests on, and what it leaves open.' }),
  })
  .meta({ id: 'FlagTrial' });

const { version: _, original_flag: _seen, deleted: _gone, ...draft } = flagInput.shape;
const body = z
  .object(draft)
  .partial()
  .extend({
    max_distinct_ids: z.int().min(1).max(1_000_000).default(100_000),
    sample: z.int().min(0).max(100).default(20),
  });

/** Adds the route that tries a draft of a flag with stored persons. */
export function flagTrialRoutes(app: App, deps: ApiDependencies & { flags: Flags }): void {
  const { readingPool, flags } = deps;
  const trials = createTrials();
  app.addHook('onClose', () => trials.close());
  // A trial may read and compute for many seconds.
  const turns = new Turns({ atOnce: 2, perAsker: 1, waitingPerAsker: 5, patience: 30_000 });

  const commandsFor = (asker: Asker): TryDependencies => ({
    ...flagCommands(deps),
    definitions: flags.definitions,
    trials,
    read: (work) => reading(readingPool, asker, work),
  });

  app.post(
    `${FLAGS_PREFIX}user_blast_radius/`,
    {
      config: { access: { scope: 'feature_flag:read' }, keepsNumbers: true },
      schema: {
        tags: ['feature flags'],
        summary: 'Count the stored persons or groups that fulfil a condition set',
        description: 'The rollout does not count. Nothing is stored.',
        params: z.object({ project_id: z.string() }),
        body: z.object({
          condition: freeForm.meta({ description: 'A condition set, as in `filters.groups` of a flag.' }),
          group_type_index: z.int().min(0).max(4).nullish().meta({
            description: 'The type of groups that the condition is about. Without it, it is about persons.',
          }),
        }),
        response: {
          200: z.object({
            affected: z.int(),
            total: z.int(),
            is_complete: z.boolean().meta({
              description:
                'False: both numbers are those of the persons that could be looked at in the time.',
            }),
          }),
        },
      },
    },
    async (request, reply) => {
      const { condition, group_type_index: groupTypeIndex = null } = request.body;
      const asker = askerOf(request, reply);
      const query = { projectId: request.project.id, condition, groupTypeIndex };
      const { isComplete, ...counts } = await turns.take(asker, () =>
        radiusOf(commandsFor(asker), query, asker.signal),
      );
      return { ...counts, is_complete: isComplete };
    },
  );

  app.post(
    `${FLAGS_PREFIX}:id/test/`,
    {
      // It shows distinct ids.
      config: { access: { scope: 'feature_flag:write', andScopes: ['person:read'] }, keepsNumbers: true },
      schema: {
        tags: ['feature flags'],
        summary: 'Try a draft of a feature flag with stored persons, before it is saved',
        description:
          'Counts how many distinct ids would get each value, and for whom it would change. Fields that are left out are those of the stored flag. The id `new` tries a flag that is not stored. Nothing is stored.',
        params: z.object({ project_id: z.string(), id: z.string() }),
        body,
        response: { 200: trial },
      },
    },
    async (request, reply) => {
      const { project, params, body: asked } = request;
      const flagId = params.id === 'new' ? null : serialOf(params.id);
      if (flagId === undefined) throw errors.notFound();
      const asker = askerOf(request, reply);
      const { max_distinct_ids: mostDistinctIds, sample, ...fields } = asked;
      const {
        version: _version,
        original_flag: _original,
        replacesFilters: _all,
        ...input
      } = changeOf(fields);
      const query = { projectId: project.id, flagId, draft: input, mostDistinctIds, sample };
      return turns.take(asker, () => tryFlag(commandsFor(asker), query, asker.signal));
    },
  );
}
