import { z } from 'zod';
import { compile } from '../../../queries/commands/ask.ts';
import { refusing } from '../../../queries/commands/refusing.ts';
import { isUuid } from '../../../values/uuid.ts';
import { askerOf } from '../../asker.ts';
import type { ApiDependencies, App } from '../../dependencies.ts';
import { errors, toApiError } from '../../errors.ts';
import { queryDependencies } from '../../queries/query.ts';
import { actionId, expressions, filters, parameters } from '../list-query.ts';
import type { LiveEvents } from './live-events.ts';
import { placeIn } from './messages.ts';
import { LEAVING } from './stream.ts';

const MOST_NAMES = 100;
const text = z.string().max(400);

export const liveQuery = z.strictObject({
  event: z
    .union([text, z.array(text).max(MOST_NAMES)])
    .optional()
    .meta({ description: 'Only events with this name. May be repeated.' }),
  distinct_id: text.optional().meta({ description: 'Only events with this distinct_id.' }),
  person_id: z.string().optional().meta({ description: 'Only events of the person with this uuid.' }),
  action_id: actionId,
  properties: filters.meta({
    description: 'Filters as JSON, as in the list of events.',
  }),
  where: expressions.meta({
    description: 'Conditions in HogQL, as a JSON list or repeated, as in the list of events.',
  }),
});

/** Statuses that say that the caller may not listen any more. Others may pass. */
const OVER = new Set([401, 403, 404]);

/** Adds the route that sends events as they are stored. */
export function liveEventRoutes(app: App, deps: ApiDependencies & { live: LiveEvents }): void {
  const { live } = deps;
  const queries = queryDependencies(deps);

  app.get(
    '/api/projects/:project_id/events/live/',
    {
      config: { access: { scope: 'query:read' } },
      schema: {
        tags: ['events'],
        summary: 'Listen to events',
        description:
          'Server-sent events: each event of the project about a second after it was stored, in the order in which they were stored. ' +
          '`data` is an event as in the list of events. `id` is its place: a client that comes again with `Last-Event-ID` goes on ' +
          'behind it. A message `skipped` says how many events were left out.',
        params: z.object({ project_id: z.string() }),
        querystring: liveQuery,
        headers: z.looseObject({
          'last-event-id': z
            .string()
            .optional()
            .meta({ description: 'The `id` of the last message. The stream goes on behind it.' }),
        }),
        response: { 200: { content: { 'text/event-stream': { schema: z.string() } } } },
      },
    },
    async (request, reply) => {
      const { query, project } = request;
      const place = placeOf(request.headers['last-event-id'], live.bounds.past);
      if (query.person_id !== undefined && !isUuid(query.person_id)) {
        throw errors.validation('invalid', 'Must be a valid UUID.', 'person_id');
      }
      const leave = live.admit(project.id, request.caller.user.id);
      try {
        const asker = askerOf(request, reply);
        const source = await parameters(
          refusing(() =>
            compile(queries, asker, {
              kind: 'EventSource',
              events: query.event === undefined ? undefined : [query.event].flat(),
              ...{ distinctId: query.distinct_id, personId: query.person_id, actionId: query.action_id },
              ...{ where: query.where, properties: query.properties },
            }),
          ),
        );
        reply.type('text/event-stream; charset=utf-8');
        // A proxy that collects an answer before it passes it on would keep the events.
        reply.headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
        if (request.method === 'HEAD') {
          leave();
          return reply.send('' as never);
        }
        const check = async () => {
          try {
            await request.checkAgain();
            // `@current` may be another project now.
            return request.project.id === project.id;
          } catch (error) {
            return !OVER.has(toApiError(error, request).status);
          }
        };
        const unsent = () => reply.raw.writableLength;
        const stream = await live.open({
          ...{ projectId: project.id, userId: request.caller.user.id },
          ...{ source, place, check, unsent },
        });
        stream.once('close', () => {
          leave();
          // Who does not take the end of a stream holds up nobody who waits for it.
          setTimeout(() => {
            if (!reply.raw.writableFinished) reply.raw.destroy();
          }, LEAVING).unref();
        });
        const leaves = () => stream.destroy();
        asker.signal?.addEventListener('abort', leaves);
        if (asker.signal?.aborted) leaves();
        request.leaveTurn();
        request.begunAfter = reply.elapsedTime;
        return reply.send(stream as never);
      } catch (error) {
        leave();
        throw error;
      }
    },
  );
}

/** Reads the place at which a client wants to go on. */
function placeOf(given: unknown, past: number) {
  if (given === undefined || given === '') return undefined;
  const place = typeof given === 'string' ? placeIn(given) : undefined;
  if (!place || Date.parse(place.at) > Date.now() + past) {
    throw errors.validation('invalid', 'Must be the `id` of a message of this stream.', 'Last-Event-ID');
  }
  return place;
}
