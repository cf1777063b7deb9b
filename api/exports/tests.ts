import { z } from 'zod';
import {
  listTestSteps,
  testDestination,
  testExportDestination,
} from '../../exports/commands/test-destination.ts';
import type { App, ExportRouteDependencies } from '../dependencies.ts';
import { changedDestination, destination } from './destination-schema.ts';
import { findsExport } from './find-export.ts';
import { PLACES, READ, WRITE } from './places.ts';

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
export function testRoutes(app: App, deps: ExportRouteDependencies): void {
  const find = findsExport(deps.pool);

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
      async ({ query }) => ({ steps: listTestSteps(query.destination) }),
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
      async ({ body }) => testDestination(deps, body.destination, body.step),
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
      async ({ batchExport, body }) => testExportDestination(deps, batchExport, body.destination, body.step),
    );
  }
}
