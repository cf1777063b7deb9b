import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { DoomedPersons } from '../../db/person-deletions.ts';
import { findPerson, findPersonIds, findPersonsOf, listPersons, type PersonRow } from '../../db/persons.ts';
import { type Transaction, transaction } from '../../db/pool.ts';
import type { Asker } from '../../db/turns.ts';
import { ask } from '../../queries/commands/ask.ts';
import { personValuesOf } from '../../queries/commands/values.ts';
import { audit } from '../../tenancy/audit.ts';
import { removePersons } from '../../tenancy/deletion.ts';
import type { Product } from '../../tenancy/product.ts';
import { isUuid } from '../../values/uuid.ts';
import { actorOf } from '../actor.ts';
import { askerOf } from '../asker.ts';
import { bounded } from '../bounded-query.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { flatten, sendCsv, sheetOf, sheetTexts, wantsCsv } from '../events/csv.ts';
import { escapeFormulas, filters, format, isTrue, parameters } from '../events/list-query.ts';
import { type PageRequest, pageLinks, pageOf, pageQuery } from '../pagination.ts';
import { queryDependencies } from '../queries/query.ts';
import { addActivityOf } from '../tenancy/activity-of.ts';
import { storeOwnEvent } from './own-events.ts';
import {
  bulkDeleted,
  bulkDeletion,
  distinctIdsBatch,
  MAX_BATCH,
  person,
  personPage,
  personsFound,
  personValues,
  personView,
  propertiesPatch,
  propertyDeletion,
  propertyValue,
  SHOWN_ALONE,
  SHOWN_IN_LIST,
  uuidsBatch,
} from './person-schema.ts';

const TAGS = ['persons'];
const params = z.object({ project_id: z.string() });
const personParams = params.extend({ id: z.string() });

const listQuery = pageQuery.extend({
  distinct_id: z.string().optional().meta({ description: 'Only the person with this distinct_id.' }),
  email: z.string().optional().meta({ description: 'Only persons with this email, in any case.' }),
  search: z.string().max(400).optional().meta({
    description:
      'Only the person with this uuid, and persons whose distinct_id, email or name begins with this text, or whose email or name has it at the beginning of a word. Case matters for the distinct_id only.',
  }),
  properties: filters.meta({
    description:
      'Filters on properties, as JSON: `[{"key": "plan", "value": "gold", "operator": "exact", "type": "person"}]`.',
  }),
  include_total: z.string().optional().meta({
    description:
      'With `properties`, `count` is null unless this is given: it takes as long as reading all persons.',
  }),
  format,
  escape_formulas: escapeFormulas,
});
type PersonListQuery = z.output<typeof listQuery>;

/** How many persons a CSV has, as long as the request names no limit. */
const CSV_LIMIT = 1_000;
const ADVICE = 'Narrow it with `distinct_id`, `email` or `search`.';

/** Filters as they are meant in a list of persons: what names no type is about properties of persons. */
function ofPersons(filter: unknown): unknown {
  if (Array.isArray(filter)) return filter.map(ofPersons);
  if (typeof filter !== 'object' || filter === null) return filter;
  if ('values' in filter) return { ...filter, values: ofPersons(filter.values) };
  return 'key' in filter && !('type' in filter) ? { ...filter, type: 'person' } : filter;
}

interface PersonPage {
  rows: PersonRow[];
  count: number | null;
  hasMore: boolean;
}

/** Deletes persons and records it. The log outlives a person, so it must not say who the person was. */
async function deleteAndAudit(
  client: Transaction,
  request: FastifyRequest,
  doomed: DoomedPersons,
  products: readonly Product[],
): Promise<number> {
  const { id: projectId, organization_id: organizationId } = request.project;
  const deleted = await removePersons(client, projectId, doomed, products);
  for (const { id, distinct_ids } of deleted) {
    await audit(client, actorOf(request), {
      scope: 'Person',
      itemId: id,
      activity: 'deleted',
      organizationId,
      projectId,
      detail: { distinct_ids },
    });
  }
  return deleted.length;
}

/** Adds the routes that read, change and delete persons. Events create persons. */
export function personRoutes(app: App, deps: ApiDependencies): void {
  const { pool, readingPool, config, products, reader } = deps;
  const queries = queryDependencies(deps);

  /** Lists persons by filters in HogQL, as the role that sees the rows of one project only. */
  async function filtered(
    asker: Asker,
    { properties, distinct_id: distinctId, email, search, include_total: total }: PersonListQuery,
    wanted: PageRequest,
  ): Promise<PersonPage> {
    const { projectId } = asker;
    const own: unknown[] = [];
    if (email !== undefined) own.push({ type: 'person', key: 'email', operator: 'exact', value: email });
    if (distinctId !== undefined) {
      const id = (await findPersonIds(pool, projectId, [distinctId])).get(distinctId);
      if (id === undefined) return { rows: [], count: 0, hasMore: false };
      own.push({ type: 'hogql', key: `id = toUUID('${id}')` });
    }
    const request = {
      kind: 'ActorsQuery' as const,
      ...{ properties: ofPersons(properties), fixedProperties: own, search },
    };
    const order = ['created_at DESC', 'id DESC'];
    const page = await ask(queries, asker, { ...request, select: ['id'], orderBy: order, ...wanted });
    const ids = page.rows.map(([id]) => JSON.parse(id as string) as string);
    const hasMore = page.hasMore ?? false;
    const found = new Map(
      (await findPersonsOf(readingPool, asker, ids, SHOWN_IN_LIST)).map((row) => [row.id, row]),
    );
    const rows = ids.flatMap((id) => found.get(id) ?? []);
    // Large persons have no room on this page.
    if (rows.length < ids.length) return { rows, count: null, hasMore: true };
    if (!hasMore && (ids.length > 0 || wanted.offset === 0))
      return { rows, count: wanted.offset + ids.length, hasMore };
    if (total === undefined) return { rows, count: null, hasMore };
    const counted = await ask(queries, asker, { ...request, select: ['count()'] });
    return { rows, count: Number(counted.rows[0]?.[0] ?? 0), hasMore };
  }

  async function read(asker: Asker, query: PersonListQuery, wanted: PageRequest): Promise<PersonPage> {
    if (query.properties !== undefined) return parameters(filtered(asker, query, wanted));
    const { distinct_id: distinctId, email, search } = query;
    const searchedId = search !== undefined && isUuid(search.trim()) ? search.trim() : undefined;
    const { count, rows } = await bounded(
      listPersons(
        readingPool,
        {
          ...{ projectId: asker.projectId, distinctId, email, search, searchedId },
          distinctIds: SHOWN_IN_LIST,
          ...wanted,
        },
        asker.signal,
      ),
      ADVICE,
    );
    return { rows, count, hasMore: wanted.offset + rows.length < count };
  }

  const listing = {
    tags: TAGS,
    summary: 'List persons, newest first',
    params,
    querystring: listQuery,
    response: { 200: personPage },
  };
  for (const isSheet of [false, true]) {
    app.get(
      // Some clients ask for a CSV by its name.
      `/api/projects/:project_id/persons${isSheet ? '.csv' : '/'}`,
      {
        config: { access: { scope: 'person:read' } },
        schema: isSheet ? { ...listing, summary: 'List persons as CSV' } : listing,
      },
      async (request, reply) => {
        const isCsv = isSheet || wantsCsv(request);
        const wanted = pageOf(request.query, isCsv ? CSV_LIMIT : undefined);
        const { rows, count, hasMore } = await read(askerOf(request, reply), request.query, wanted);
        const pages = pageLinks(request, config.SLUICE_PUBLIC_URL, wanted, { shown: rows.length, hasMore });
        if (!isCsv) return { count, ...pages, results: rows.map(personView) };
        const cellsOf = (row: PersonRow) => flatten(personView(row), '', new Map());
        const sheet = await sheetOf(rows, cellsOf);
        const escapesFormulas = isTrue(request.query.escape_formulas);
        const rest =
          sheet.records < rows.length
            ? pageLinks(request, config.SLUICE_PUBLIC_URL, wanted, { shown: sheet.records, hasMore: true })
            : pages;
        return sendCsv(reply, sheetTexts(sheet, rows, cellsOf, { escapesFormulas }), rest.next);
      },
    );
  }

  app.get(
    '/api/projects/:project_id/persons/values/',
    {
      config: { access: { scope: 'person:read' } },
      schema: {
        tags: TAGS,
        summary: 'List values of a property of persons, the most frequent first',
        description: 'Looks at the newest 100,000 persons, and lists twenty values at most.',
        params,
        querystring: z.object({
          key: z.string().max(400).optional().meta({ description: 'The name of the property.' }),
          value: z.string().max(400).optional().meta({
            description: 'Only values with this text in them, in any case.',
          }),
          refresh: z.string().optional().meta({ description: 'Values are always read anew.' }),
        }),
        response: { 200: personValues },
      },
    },
    async (request, reply) => {
      const { key = '', value = '' } = request.query;
      reply.header('cache-control', 'max-age=10');
      const results =
        key === '' ? [] : await personValuesOf({ reader }, askerOf(request, reply), { key, search: value });
      return { results, refreshing: false as const };
    },
  );

  for (const [path, field, body] of [
    ['batch_by_distinct_ids', 'distinct_ids', distinctIdsBatch],
    ['batch_by_uuids', 'uuids', uuidsBatch],
  ] as const) {
    app.post(
      `/api/projects/:project_id/persons/${path}/`,
      {
        config: { access: { scope: 'person:read' } },
        schema: {
          tags: TAGS,
          summary: `Find up to ${MAX_BATCH} persons by their ${field === 'uuids' ? 'uuids' : 'distinct ids'}`,
          params,
          body,
          response: { 200: personsFound },
        },
      },
      async (request, reply) => {
        const given = (request.body as Record<string, unknown>)[field];
        const asked = (Array.isArray(given) ? given : []).slice(0, MAX_BATCH);
        if (asked.length === 0) return { results: {} };
        const asker = askerOf(request, reply);
        const isFine = (one: unknown) => typeof one === 'string' && (field !== 'uuids' || isUuid(one));
        if (!asked.every(isFine)) {
          const message =
            field === 'uuids' ? 'One or more UUIDs are invalid.' : 'One or more distinct ids are no texts.';
          throw errors.validation('invalid_input', message, null);
        }
        const names = asked as string[];
        const idOf: ReadonlyMap<string, string> =
          field === 'uuids'
            ? new Map(names.map((id) => [id.toLowerCase(), id.toLowerCase()]))
            : await findPersonIds(pool, asker.projectId, names);
        const rows = await findPersonsOf(readingPool, asker, [...new Set(idOf.values())], SHOWN_IN_LIST);
        const found = new Map(rows.map((row) => [row.id, personView(row)]));
        const results = [...idOf].flatMap(([name, id]) => {
          const one = found.get(id);
          return one ? [[name, one] as const] : [];
        });
        return { results: Object.fromEntries(results) };
      },
    );
  }

  app.get(
    '/api/projects/:project_id/persons/:id/',
    {
      config: { access: { scope: 'person:read' } },
      schema: { tags: TAGS, summary: 'Retrieve a person', params: personParams, response: { 200: person } },
    },
    async ({ project, params: { id } }) => {
      if (!isUuid(id)) {
        throw errors.notFound(
          `The ID provided does not look like a personID. If you are using a distinctId, please use /persons?distinct_id=${encodeURIComponent(id)} instead.`,
        );
      }
      const row = await findPerson(pool, project.id, id, SHOWN_ALONE);
      if (!row) throw errors.notFound();
      return personView(row);
    },
  );

  app.delete(
    '/api/projects/:project_id/persons/:id/',
    {
      config: { access: { scope: 'person:write' } },
      schema: {
        tags: TAGS,
        summary: 'Delete a person',
        description:
          'The events of the person stay. A later event with one of the distinct ids creates a new person.',
        params: personParams,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      if (!isUuid(id)) throw errors.notFound();
      const deleted = await transaction(pool, (client) =>
        deleteAndAudit(client, request, { ids: [id] }, products),
      );
      if (deleted === 0) throw errors.notFound();
      return reply.code(204).send(null);
    },
  );

  app.post(
    '/api/projects/:project_id/persons/bulk_delete/',
    {
      config: { access: { scope: 'person:write' } },
      schema: {
        tags: TAGS,
        summary: 'Delete up to 1000 persons at once',
        params,
        body: bulkDeletion,
        response: { 202: bulkDeleted },
      },
    },
    async (request, reply) => {
      const { ids, distinct_ids: distinctIds } = request.body;
      const doomed = ids?.length ? { ids } : { distinctIds: distinctIds ?? [] };
      const deleted = await transaction(pool, (client) => deleteAndAudit(client, request, doomed, products));
      reply.code(202);
      return {
        ...{ persons_found: deleted, persons_deleted: deleted },
        ...{ events_queued_for_deletion: false as const, recordings_queued_for_deletion: false as const },
        deletion_errors: [],
      };
    },
  );

  /** Finds the person of the path, with one distinct id. */
  async function findOne({ project, params: given }: FastifyRequest): Promise<PersonRow> {
    const { id } = given as { id: string };
    const row = isUuid(id) ? await findPerson(pool, project.id, id, 1) : undefined;
    if (!row) throw errors.notFound();
    return row;
  }

  /** Changes properties of the person of the path by an event. The log outlives the person, so it has their names only. */
  async function change(
    request: FastifyRequest,
    event: string,
    properties: { $set: Record<string, unknown> } | { $unset: string[] },
  ): Promise<void> {
    const { id: projectId, organization_id: organizationId } = request.project;
    const { id, distinct_ids: distinctIds } = await findOne(request);
    const [distinctId] = distinctIds;
    if (distinctId === undefined) throw errors.notFound();
    await storeOwnEvent(deps, { projectId, event, distinctId, properties });
    const names = '$set' in properties ? Object.keys(properties.$set) : properties.$unset;
    await audit(pool, actorOf(request), {
      ...{ scope: 'Person', itemId: id, activity: 'updated', organizationId, projectId },
      detail: { properties: names },
    });
  }

  // Looks the person up before the body is validated, so that an unknown one is a 404 whatever the body says.
  const isThere = async (request: FastifyRequest): Promise<void> => {
    await findOne(request);
  };

  app.patch(
    '/api/projects/:project_id/persons/:id/',
    {
      config: { access: { scope: 'person:write' } },
      preValidation: isThere,
      schema: {
        tags: TAGS,
        summary: 'Set properties of a person',
        description: 'Stores an event `$set`. Properties that you leave out keep their values.',
        params: personParams,
        body: propertiesPatch,
        response: { 202: z.null() },
      },
    },
    async (request, reply) => {
      await change(request, '$set', { $set: request.body.properties });
      return reply.code(202).send(null);
    },
  );

  app.post(
    '/api/projects/:project_id/persons/:id/update_property/',
    {
      config: { access: { scope: 'person:write' } },
      preValidation: isThere,
      schema: {
        tags: TAGS,
        summary: 'Set a property of a person',
        description: 'Stores an event `$set`.',
        params: personParams,
        body: propertyValue,
        response: { 202: z.null() },
      },
    },
    async (request, reply) => {
      const { key, value } = request.body;
      await change(request, '$set', { $set: Object.fromEntries([[key, value]]) });
      return reply.code(202).send(null);
    },
  );

  app.post(
    '/api/projects/:project_id/persons/:id/delete_property/',
    {
      config: { access: { scope: 'person:write' } },
      preValidation: isThere,
      schema: {
        tags: TAGS,
        summary: 'Remove a property of a person',
        description: 'Stores an event `$delete_person_property`.',
        params: personParams,
        body: propertyDeletion,
        response: { 201: z.object({ success: z.literal(true) }) },
      },
    },
    async (request, reply) => {
      await change(request, '$delete_person_property', { $unset: [request.body.$unset] });
      reply.code(201);
      return { success: true as const };
    },
  );

  addActivityOf(app, deps, {
    ...{ prefix: '/api/projects/:project_id/persons/', scope: 'Person', tag: TAGS[0] as string },
    ...{ one: 'a person', many: 'persons' },
    find: isThere,
    idOf: ({ params: given }) => (given as { id: string }).id.toLowerCase(),
  });
}
