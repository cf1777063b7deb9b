import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type EventRow, findEvent, listEvents } from '../../db/events.ts';
import { outlinePersons, type PersonOutline } from '../../db/persons.ts';
import { NAMING_PROPERTIES } from '../../properties/person-name.ts';
import { listEventsWhere } from '../../queries/commands/list-events.ts';
import type { EventConditions } from '../../queries/rules/request.ts';
import { isUuid } from '../../values/uuid.ts';
import { askerOf } from '../asker.ts';
import { bounded } from '../bounded-query.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { sendPieces } from '../pieces.ts';
import { rowTexts } from '../queries/answer.ts';
import { queryDependencies } from '../queries/query.ts';
import { columnsCsv, columnsPage, readColumns } from './columns-page.ts';
import { flatten, sendCsv, sheetOf, sheetTexts, wantsCsv } from './csv.ts';
import { eventOf, eventPage, eventRecord, eventText, pageTexts } from './event-schema.ts';
import {
  behind,
  DEFAULT_CSV_LIMIT,
  DEFAULT_LIMIT,
  escapeFormulas,
  format,
  includePerson,
  isTrue,
  type ListQuery,
  listQuery,
  MAX_LIMIT,
  type NextPage,
  parameters,
  spanOf,
} from './list-query.ts';

/** How far into the future a list without `before` reaches, because the clocks of clients may be ahead. */
const AHEAD_MILLISECONDS = 5_000;

/** Parameters that a link to the next page does not repeat. */
const UNLINKED = ['personal_api_key', 'offset', 'before_uuid', 'after_uuid'];

/** The link to the next page, which says what is other there. */
function linkOf({ originalUrl }: FastifyRequest, publicUrl: string, next: NextPage | null): string | null {
  if (!next) return null;
  const [pathname, query = ''] = originalUrl.split('?', 2) as [string, string?];
  const parameters = new URLSearchParams(query);
  for (const name of UNLINKED) parameters.delete(name);
  for (const [name, value] of Object.entries(next)) parameters.set(name, value);
  return `${publicUrl}${pathname}?${parameters}`;
}

/** Answers with JSON as it is. The schema of the route describes it, and tests compare them. */
function sendJson(reply: FastifyReply, json: string | AsyncGenerator<string>) {
  reply.type('application/json; charset=utf-8');
  return typeof json === 'string' ? reply.send(json as never) : sendPieces(reply, json);
}

/** A request for a list. */
type ListRequest = FastifyRequest & { query: ListQuery };

async function* nothing(): AsyncGenerator<string> {}

const ADVICE = 'Narrow it with `after` and `before`.';

/** Adds the routes that read stored events, filtered by time and by columns. */
export function eventRoutes(app: App, deps: ApiDependencies): void {
  const { pool, readingPool, config } = deps;
  const queries = queryDependencies(deps);
  const isAction = async (projectId: number, actionId: number): Promise<boolean> =>
    (await queries.actionSteps(projectId, actionId)) !== undefined;

  /** Finds the persons of events by distinct_id, if the request asks for them. */
  const personsOf = async (
    rows: readonly EventRow[],
    { project, query }: { project: { id: number }; query: { include_person?: string | undefined } },
  ): Promise<Map<string, PersonOutline>> => {
    if (!isTrue(query.include_person) || rows.length === 0) return new Map();
    const distinctIds = [...new Set(rows.map((row) => row.distinct_id))];
    return outlinePersons(pool, project.id, distinctIds, NAMING_PROPERTIES);
  };

  const list = async (request: ListRequest, reply: FastifyReply, isCsv: boolean) => {
    const { query } = request;
    const none = () => (isCsv ? sendCsv(reply, nothing(), null) : reply.send({ next: null, results: [] }));
    const { event, distinct_id: distinctId, person_id: personId } = query;
    // An id that is not a uuid belongs to no person.
    if (personId !== undefined && !isUuid(personId)) return none();
    if (query.action_id !== undefined && !(await isAction(request.project.id, query.action_id)))
      return none();
    const asker = askerOf(request, reply);
    const limit = Math.min(query.limit || (isCsv ? DEFAULT_CSV_LIMIT : DEFAULT_LIMIT), MAX_LIMIT);
    const before = query.before ?? new Date(Date.now() + AHEAD_MILLISECONDS).toISOString();
    const conditions: EventConditions = {
      ...{ event, distinctId, personId, actionId: query.action_id },
      ...{ where: query.where, properties: query.properties },
    };
    const escapesFormulas = isTrue(query.escape_formulas);
    const link = (next: NextPage | null) => linkOf(request, config.SLUICE_PUBLIC_URL, next);

    if (query.select !== undefined) {
      const page = await parameters(readColumns(queries, asker, conditions, query, { before, limit }));
      const next = link(page.next);
      if (isCsv) return sendCsv(reply, columnsCsv(page.answer, { escapesFormulas }), next);
      const { columns, hasMore } = page.answer;
      const [names, types] = [columns.map((one) => one.name), columns.map((one) => one.type)];
      const texts = rowTexts({ columns: names, types, next, hasMore }, page.answer);
      return sendJson(reply, texts);
    }

    const span = spanOf(query, before);
    const wanted = { ...span, limit, offset: query.offset ?? 0 };
    const isFiltered = [query.where, query.properties, query.action_id].some((one) => one !== undefined);
    const page = isFiltered
      ? await parameters(listEventsWhere(queries, asker, conditions, wanted))
      : await bounded(
          listEvents(
            readingPool,
            { projectId: asker.projectId, event, distinctId, personId, ...wanted },
            asker.signal,
          ),
          ADVICE,
        );
    const persons = await personsOf(page.rows, request);
    if (!isCsv) {
      const next = link(page.next ? behind(page.next, span.ascending) : null);
      return sendJson(reply, pageTexts(page.rows, persons, next));
    }
    const cellsOf = (row: EventRow) => flatten(eventOf(row, persons.get(row.distinct_id)), '', new Map());
    const sheet = await sheetOf(page.rows, cellsOf);
    const last = sheet.records < page.rows.length ? page.rows[sheet.records - 1] : page.next;
    const next = link(last ? behind(last, span.ascending) : null);
    return sendCsv(reply, sheetTexts(sheet, page.rows, cellsOf, { escapesFormulas }), next);
  };

  const listing = {
    tags: ['events'],
    summary: 'List events, newest first',
    deprecated: true,
    params: z.object({ project_id: z.string() }),
    querystring: listQuery,
    response: { 200: z.union([eventPage, columnsPage]) },
  };
  app.get(
    '/api/projects/:project_id/events/',
    { config: { access: { scope: 'query:read' } }, schema: listing },
    (request, reply) => list(request, reply, wantsCsv(request)),
  );
  // Some clients ask for a CSV by this name.
  app.get(
    '/api/projects/:project_id/events.csv',
    { config: { access: { scope: 'query:read' } }, schema: { ...listing, summary: 'List events as CSV' } },
    (request, reply) => list(request, reply, true),
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
          format,
          escape_formulas: escapeFormulas,
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
      const person = persons.get(row.distinct_id);
      if (!wantsCsv(request)) return sendJson(reply, eventText(row, person));
      const cellsOf = (one: EventRow) => flatten(eventOf(one, person), '', new Map());
      const escapesFormulas = isTrue(request.query.escape_formulas);
      return sendCsv(
        reply,
        sheetTexts(await sheetOf([row], cellsOf), [row], cellsOf, { escapesFormulas }),
        null,
      );
    },
  );
}
