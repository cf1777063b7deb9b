import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type EventPage, type EventRow, findEvent, listEvents } from '../../db/events.ts';
import { outlinePersons, type PersonOutline } from '../../db/persons.ts';
import { NAMING_PROPERTIES } from '../../properties/person-name.ts';
import { isUuid } from '../../values/uuid.ts';
import { askerOf, clientSignal } from '../asker.ts';
import { bounded } from '../bounded-query.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { eventMoment } from '../moment.ts';
import { eventPage, eventRecord, eventText, eventTime, pageTexts } from './event-schema.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 50_000;
const MAX_OFFSET = 50_000;
/** How far into the future a list without `before` reaches, because the clocks of clients may be ahead. */
const AHEAD_MILLISECONDS = 5_000;
const whole = (max: number, message: string) =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'A valid integer is required.')
    .transform(Number)
    .refine((value) => value <= max, message)
    .optional();

const includePerson = z
  .enum(['true', 'false', 'True', 'False'])
  .optional()
  .meta({ description: 'Whether each event contains its person. Default: `false`.' });

const ORDERS = ['["-timestamp"]', '["timestamp"]'] as const;

const listQuery = z.strictObject({
  event: z.string().optional().meta({ description: 'Only events with this name.' }),
  distinct_id: z.string().optional().meta({ description: 'Only events with this distinct_id.' }),
  person_id: z.string().optional().meta({
    description: 'Only events of the person with this uuid.',
  }),
  include_person: includePerson,
  after: eventMoment.meta({
    description: 'Only events after this time, in ISO 8601 or relative such as `-7d`.',
  }),
  before: eventMoment.meta({ description: 'Only events before this time. Default: five seconds from now.' }),
  after_uuid: z.uuid().optional().meta({
    description: 'The last event of the previous page, at the time `after`. The link `next` contains it.',
  }),
  before_uuid: z.uuid().optional().meta({
    description: 'The last event of the previous page, at the time `before`. The link `next` contains it.',
  }),
  limit: whole(Number.MAX_SAFE_INTEGER, '').meta({
    description: `Events per page: ${DEFAULT_LIMIT} by default, at most ${MAX_LIMIT}.`,
  }),
  offset: whole(MAX_OFFSET, `Offset is deprecated. Max supported offset value is ${MAX_OFFSET}.`).meta({
    description: 'Deprecated. Follow `next` instead.',
  }),
  orderBy: z
    .enum(ORDERS)
    .optional()
    .meta({ description: 'A JSON list: `["-timestamp"]` (newest first, the default) or `["timestamp"]`.' }),
  format: z.literal('json').optional(),
  personal_api_key: z.string().optional(),
});
type ListQuery = z.output<typeof listQuery>;

/** Parameters that a link to the next page does not repeat. */
const UNLINKED = ['personal_api_key', 'offset', 'before_uuid', 'after_uuid'];

function nextLink(request: FastifyRequest, publicUrl: string, { next }: EventPage, ascending: boolean) {
  if (!next) return null;
  const [pathname, query = ''] = request.originalUrl.split('?', 2) as [string, string?];
  const parameters = new URLSearchParams(query);
  for (const name of UNLINKED) parameters.delete(name);
  const bound = ascending ? 'after' : 'before';
  parameters.set(bound, eventTime(next.timestamp));
  parameters.set(`${bound}_uuid`, next.uuid);
  return `${publicUrl}${pathname}?${parameters}`;
}

/** Answers with JSON as it is. The schema of the route describes it, and tests compare them. */
const sendJson = (reply: FastifyReply, json: string | Readable) =>
  reply.type('application/json; charset=utf-8').send(json as never);

const ADVICE = 'Narrow it with `after` and `before`.';

/** Adds the routes that read stored events, filtered by time and by columns. */
export function eventRoutes(app: App, { pool, readingPool, config }: ApiDependencies): void {
  /** Finds the persons of events by distinct_id, if the request asks for them. */
  const personsOf = async (
    rows: readonly EventRow[],
    { project, query }: { project: { id: number }; query: { include_person?: string | undefined } },
  ): Promise<Map<string, PersonOutline>> => {
    if (query.include_person?.toLowerCase() !== 'true' || rows.length === 0) return new Map();
    const distinctIds = [...new Set(rows.map((row) => row.distinct_id))];
    return outlinePersons(pool, project.id, distinctIds, NAMING_PROPERTIES);
  };

  app.get(
    '/api/projects/:project_id/events/',
    {
      config: { access: { scope: 'query:read' } },
      schema: {
        tags: ['events'],
        summary: 'List events, newest first',
        deprecated: true,
        params: z.object({ project_id: z.string() }),
        querystring: listQuery,
        response: { 200: eventPage },
      },
    },
    async (request, reply) => {
      const query: ListQuery = request.query;
      const ascending = query.orderBy === ORDERS[1];
      const { person_id: person, after_uuid, before_uuid } = query;
      for (const bound of ['after', 'before'] as const) {
        if (query[`${bound}_uuid`] === undefined || query[bound] !== undefined) continue;
        const message = `\`${bound}_uuid\` needs \`${bound}\`, the time of the event that it names.`;
        throw errors.validation('invalid_input', message, `${bound}_uuid`);
      }
      // An id that is not a uuid belongs to no person.
      if (person !== undefined && !isUuid(person)) return reply.send({ next: null, results: [] });
      const cursor = ascending ? after_uuid : before_uuid;
      const bound = ascending ? query.after : query.before;
      const position = cursor && bound ? { timestamp: bound, uuid: cursor } : undefined;
      const page = await bounded(
        listEvents(
          readingPool,
          {
            projectId: request.project.id,
            event: query.event,
            distinctId: query.distinct_id,
            personId: person,
            // After a cursor there may be more events at exactly this time, so the position replaces the bound.
            after: position && ascending ? undefined : query.after,
            before:
              position && !ascending
                ? undefined
                : (query.before ?? new Date(Date.now() + AHEAD_MILLISECONDS).toISOString()),
            position,
            ascending,
            limit: Math.min(query.limit || DEFAULT_LIMIT, MAX_LIMIT),
            offset: query.offset ?? 0,
          },
          clientSignal(reply),
        ),
        ADVICE,
      );
      const persons = await personsOf(page.rows, request);
      const next = nextLink(request, config.SLUICE_PUBLIC_URL, page, ascending);
      return sendJson(reply, Readable.from(pageTexts(page.rows, persons, next)));
    },
  );

  app.get(
    '/api/projects/:project_id/events/:id/',
    {
      config: { access: { scope: 'query:read' } },
      schema: {
        tags: ['events'],
        summary: 'Retrieve an event',
        deprecated: true,
        params: z.object({ project_id: z.string(), id: z.string() }),
        querystring: z.strictObject({
          include_person: includePerson,
          format: z.literal('json').optional(),
          personal_api_key: z.string().optional(),
        }),
        response: { 200: eventRecord },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      if (!isUuid(id)) throw errors.validation('invalid', 'Invalid UUID', null);
      const row = await bounded(findEvent(readingPool, askerOf(request, reply), id), ADVICE);
      if (!row) throw errors.notFound(`No events exist for event UUID ${id}`);
      const persons = await personsOf([row], request);
      return sendJson(reply, eventText(row, persons.get(row.distinct_id)));
    },
  );
}
