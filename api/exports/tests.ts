import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import {
  listTestSteps,
  testDestination,
  testExportDestination,
} from '../../exports/commands/test-destination.ts';
import { actorOf } from '../actor.ts';
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
const index = z.int().min(0).default(0).meta({ description: 'The number of the step. The first one is 0.' });
const newTest = z.object({
  destination,
  step: index,
  model: z.string().optional().meta({ description: 'The model of the export.' }),
  hogql_query: z
    .string()
    .nullish()
    .meta({ description: 'The query of the export, whose columns a table has to take.' }),
});
const storedTest = z.object({
  destination: changedDestination.optional(),
  step: index,
});

/** A signal that is aborted when the client has gone, so that nothing is done for nobody. */
function clientOf({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  raw.once('close', () => gone.abort(new Error('The client has gone.')));
  return gone.signal;
}

/**
 * Adds the routes that test a destination. A client runs one step after the other until one fails. Nothing is stored.
 */
export function testRoutes(app: App, deps: ExportRouteDependencies): void {
  const find = findsExport(deps.pool);

  for (const { prefix, params, access, of } of PLACES) {
    app.get(
      `${prefix}test/`,
      {
        config: { access: { scope: READ, ...access } },
        schema: {
          tags: TAGS,
          summary: `List the steps that test a destination for batch exports ${of}`,
          params,
          querystring: z.strictObject({
            destination: z.string().meta({ description: 'The type of the destination.' }),
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
          summary: `Run one step that tests a destination for a new batch export ${of}`,
          description: 'The body may be one that creates a batch export.',
          params,
          body: newTest,
          response: { 200: step },
        },
      },
      async (request, reply) => {
        const { body, project, organization } = request;
        const place = project ? { projectId: project.id } : { organizationId: organization.id };
        const wanted = {
          step: body.step,
          model: body.model,
          hogqlQuery: body.hogql_query,
          signal: clientOf(reply),
        };
        return testDestination(deps, actorOf(request), place, body.destination, wanted);
      },
    );

    app.post(
      `${prefix}:id/run_test_step/`,
      {
        config: { access: { scope: WRITE, ...access } },
        preValidation: find,
        schema: {
          tags: TAGS,
          summary: `Run one step that tests the destination of a batch export ${of}`,
          description:
            'Keys of the configuration in the body replace the stored ones. All others keep their values. If a key changes where secrets are sent, such as the host, the body must contain the secrets.',
          params: params.extend({ id: z.string() }),
          body: storedTest,
          response: { 200: step },
        },
      },
      async (request, reply) => {
        const { body, batchExport } = request;
        const wanted = { step: body.step, signal: clientOf(reply) };
        return testExportDestination(deps, actorOf(request), batchExport, body.destination, wanted);
      },
    );
  }
}
