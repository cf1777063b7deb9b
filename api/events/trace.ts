import { z } from 'zod';
import type { Queryable } from '../../db/pool.ts';
import { reading } from '../../db/reading.ts';
import { traceExports } from '../../exports/commands/trace-event.ts';
import { traceFunctions } from '../../functions/commands/trace-event.ts';
import { findTracedEvent } from '../../functions/rows/trace.ts';
import { type Scope, scopeAllows } from '../../tenancy/scopes.ts';
import { isUuid } from '../../values/uuid.ts';
import { askerOf } from '../asker.ts';
import { bounded } from '../bounded-query.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { freeForm, timestamp } from '../fields.ts';
import { functionRouteDependencies } from '../functions/dependencies.ts';
import { attempt } from '../functions/history.ts';

const ADVICE = 'Try it again later.';

const change = z.object({
  function_id: z.guid(),
  name: z.string().nullable().meta({ description: 'Null: the function is gone, or has no name.' }),
  version: z.int(),
  properties: z
    .array(z.string())
    .meta({ description: 'Names of properties that were added, changed or removed.' }),
  fields: z.array(z.string()).meta({ description: '`event` or `distinct_id`, if they were changed.' }),
});
const invocation = z.object({
  id: z.guid(),
  version: z.int(),
  mapping: z.int().nullable(),
  status: z.enum(['waiting', 'succeeded', 'failed', 'cancelled']),
  error: z.string().nullable(),
  attempts: z.array(attempt).meta({ description: 'Secrets are hidden.' }),
  created_at: timestamp,
  finished_at: timestamp.nullable(),
  rerun_of: z.guid().nullable(),
});
const reaction = z.object({
  function_id: z.guid(),
  name: z.string().nullable(),
  version: z.int().meta({ description: 'The version that is stored now.' }),
  matches: z.boolean().nullable().meta({
    description:
      'Whether the version that is stored now wants the event. Null: its filters cannot be evaluated.',
  }),
  reason: z
    .enum(['disabled', 'enabled_later', 'historical', 'event_name', 'conditions', 'error', 'pending'])
    .nullable()
    .meta({
      description:
        'Why the function did not run for the event. `disabled`: it is not enabled. `enabled_later`: it was enabled ' +
        'after the event was stored. `historical`: the event was imported. `event_name`: it wants other events. ' +
        '`conditions`: a condition is not met. `error`: its filters cannot be evaluated. `pending`: it wants the event ' +
        'and did not run, because workers are behind, masking or its cost held it back, or it wants it only since a ' +
        'change. Null: it ran, or waits to run.',
    }),
  error: z.string().nullable(),
  conditions: z
    .array(z.object({ condition: freeForm, matches: z.boolean().nullable(), error: z.string().nullable() }))
    .nullable()
    .meta({
      description: 'Each condition, and whether the event meets it. Null: `explain` names another function.',
    }),
  invocations: z.array(invocation),
});
const run = z.object({
  run_id: z.guid(),
  backfill_id: z.guid().nullable(),
  data_interval_start: timestamp.nullable(),
  data_interval_end: timestamp,
  finished_at: timestamp.nullable(),
  manifest_key: z.string().nullable().meta({
    description: 'The manifest that lists the files of the run. Null: the destination takes rows.',
  }),
});
const exported = z.object({
  batch_export_id: z.guid(),
  name: z.string(),
  destination: z.string(),
  takes_event: z.boolean().nullable().meta({
    description: 'Whether the export, as it is now, takes the event. Null: that could not be found out.',
  }),
  runs: z.array(run),
});

const eventTrace = z
  .object({
    event: z.object({
      id: z.guid(),
      event: z.string(),
      distinct_id: z.string(),
      timestamp,
      received_at: timestamp,
      stored_at: timestamp,
      historical: z.boolean().meta({ description: 'Whether it belongs to a historical import.' }),
    }),
    person: z.object({
      id: z.guid().meta({ description: 'The person to whom the event belonged when it was stored.' }),
      mode: z.string(),
      current_id: z
        .guid()
        .nullable()
        .meta({ description: 'The person who has the `distinct_id` now. Null: none has.' }),
      was_merged: z.boolean().meta({ description: 'Whether that is another person.' }),
    }),
    transformations: z.array(change).nullable().meta({
      description: 'What changed the event before it was stored. Null: the key may not read functions.',
    }),
    functions: z.array(reaction).nullable().meta({
      description:
        'Enabled destinations, and others that ran for the event. Null: the key may not read functions.',
    }),
    has_more_functions: z.boolean(),
    exports: z.array(exported).nullable().meta({
      description:
        'Exports with completed runs over the interval of the event. Null: the key may not read batch exports.',
    }),
    has_more_exports: z.boolean(),
  })
  .meta({ id: 'EventTrace' });

/** Adds the route that says everything that happened to an event. */
export function traceRoutes(app: App, deps: ApiDependencies): void {
  const functions = functionRouteDependencies(deps);
  const { readingPool, pool } = deps;

  app.get(
    '/api/projects/:project_id/events/:id/trace/',
    {
      config: { access: { scope: 'query:read' } },
      schema: {
        tags: ['events'],
        summary: 'Trace an event',
        description:
          'What happened to a stored event: transformations, its person, functions with their attempts, and exports.',
        params: z.object({ project_id: z.string(), id: z.string() }),
        querystring: z.strictObject({
          explain: z.guid().optional().meta({
            description: 'A function whose conditions are evaluated one by one.',
          }),
        }),
        response: { 200: eventTrace },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      if (!isUuid(id)) throw errors.validation('invalid', 'Invalid UUID', null);
      const { project, caller } = request;
      const asker = askerOf(request, reply);
      const { signal } = asker;
      const read: Read = (work) => bounded(reading(readingPool, asker, work), ADVICE);
      const event = await read((client) => findTracedEvent(client, project.id, id.toLowerCase()));
      if (!event) throw errors.notFound(`No events exist for event UUID ${id}`);
      const may = (scope: Scope) => scopeAllows(caller.key.scopes, scope);
      const current = (await currentPerson(read, project.id, event.distinct_id)) ?? null;
      const reactions = may('hog_function:read')
        ? await traceFunctions(
            { ...functions, read, site: functions.publicUrl },
            { id: project.id, name: project.name },
            event,
            request.query.explain,
            signal,
          )
        : { transformations: null, functions: null, has_more_functions: false };
      const exports = may('batch_export:read')
        ? await traceExports({ ...deps, pool }, project.id, event, signal)
        : { exports: null, has_more_exports: false };
      const { uuid, event: name, distinct_id, timestamp: at, created_at, inserted_at, historical } = event;
      return {
        event: {
          ...{ id: uuid, event: name, distinct_id, timestamp: at, historical },
          ...{ received_at: created_at, stored_at: inserted_at },
        },
        person: {
          ...{ id: event.person_id, mode: event.person_mode, current_id: current },
          was_merged: current !== null && current !== event.person_id,
        },
        ...reactions,
        ...exports,
      };
    },
  );
}

type Read = <T>(work: (client: Queryable) => Promise<T>) => Promise<T>;

async function currentPerson(read: Read, projectId: number, distinctId: string): Promise<string | undefined> {
  const { rows } = await read((client) =>
    client.query('select person_id from person_distinct_ids where project_id = $1 and distinct_id = $2', [
      projectId,
      distinctId,
    ]),
  );
  return rows[0]?.person_id;
}
