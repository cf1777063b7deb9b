import { z } from 'zod';
import { mergeConfig } from '../../destinations/config.ts';
import { DestinationConfigError } from '../../destinations/errors.ts';
import { findDestination, requireDestination } from '../../destinations/registry.ts';
import { type DestinationSettings, runTestStep, testSteps } from '../../destinations/settings.ts';
import { openSettings } from '../../exports/reads/settings.ts';
import { findsExport, PLACES, READ, WRITE } from '../batch-exports/places.ts';
import { refusing } from '../batch-exports/refusals.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { changedDestination, destination } from './destination-schema.ts';

const TAGS = ['batch exports'];

const step = z
  .object({
    name: z.string(),
    description: z.string(),
    result: z
      .object({ status: z.enum(['Passed', 'Failed', 'Skipped']), message: z.string().nullable() })
      .nullable(),
  })
  .meta({ id: 'DestinationTestStep' });
const index = z.int().min(0).default(0).meta({ description: 'Which step, from 0 on.' });
const newTest = z.object({ destination, step: index });
const storedTest = z.object({
  destination: changedDestination.optional(),
  step: index,
});

/** Tests of destinations, step by step: a client goes on until one fails. Nothing is kept of them. */
export function testRoutes(app: App, { pool, config, egress, keyring }: ApiDependencies): void {
  const find = findsExport(pool);

  const run = async (settings: DestinationSettings, at: number) => {
    const done = await runTestStep(settings, at, { egress, exportRoot: config.SLUICE_EXPORT_ROOT });
    if (done) return done;
    const count = testSteps(settings.type)?.length ?? 0;
    if (count === 0) throw errors.notFound(`There is no test of ${settings.type}.`);
    throw errors.validation(
      'invalid_input',
      `There is no step ${at}: the test of ${settings.type} has ${count} steps, from 0 on.`,
      'step',
    );
  };

  for (const { prefix, params, access, of } of PLACES) {
    app.get(
      `${prefix}test/`,
      {
        config: { access: { scope: READ, ...access } },
        schema: {
          tags: TAGS,
          summary: `List the steps of the test of a destination, for batch exports ${of}`,
          params,
          querystring: z.strictObject({
            destination: z.string().meta({ description: 'Its type.' }),
            personal_api_key: z.string().optional(),
          }),
          response: { 200: z.object({ steps: z.array(step) }) },
        },
      },
      async ({ query }) => {
        const steps = testSteps(query.destination);
        if (!steps) {
          const known = findDestination(query.destination) !== undefined;
          throw errors.notFound(
            known ? `There is no test of ${query.destination}.` : 'There is no such type of destination.',
          );
        }
        return { steps };
      },
    );

    app.post(
      `${prefix}run_test_step_new/`,
      {
        config: { access: { scope: WRITE, ...access } },
        schema: {
          tags: TAGS,
          summary: `Run a step of the test of a destination that a batch export ${of} may get`,
          description: 'Takes what creates a batch export, too.',
          params,
          body: newTest,
          response: { 200: step },
        },
      },
      async ({ body }) =>
        run({ type: body.destination.type, config: body.destination.config ?? {} }, body.step),
    );

    app.post(
      `${prefix}:id/run_test_step/`,
      {
        config: { access: { scope: WRITE, ...access } },
        preValidation: find,
        schema: {
          tags: TAGS,
          summary: `Run a step of the test of the destination of a batch export ${of}`,
          description: 'What the body says of the configuration takes the place of what is stored.',
          params: params.extend({ id: z.string() }),
          body: storedTest,
          response: { 200: step },
        },
      },
      async ({ batchExport, body: { destination: sent, step: at } }) => {
        const settings = await refusing(() => {
          const stored = openSettings(keyring, batchExport);
          const type = sent?.type ?? stored.type;
          if (!requireDestination(type).types.includes(stored.type)) {
            throw new DestinationConfigError(
              `Cannot change destination type from '${stored.type}' to '${type}'. Delete this batch export and create a new one with the new destination type.`,
              'type',
            );
          }
          return { type, config: mergeConfig(stored.config, sent?.config ?? {}) };
        });
        return run(settings, at);
      },
    );
  }
}
