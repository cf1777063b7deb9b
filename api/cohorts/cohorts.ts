import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { addNamed } from '../../cohorts/commands/add-named.ts';
import { addPersons, removePerson } from '../../cohorts/commands/members.ts';
import {
  type CohortCommandDependencies,
  changeCohort,
  cohortsAsking,
  createCohort,
} from '../../cohorts/commands/save.ts';
import { type CohortRow, findCohort, listCohorts } from '../../cohorts/rows/cohorts.ts';
import { countMembers, listMembers } from '../../cohorts/rows/members.ts';
import { COHORT_LIMITS } from '../../cohorts/rules/limits.ts';
import { readUpload, type Upload } from '../../cohorts/rules/upload.ts';
import type { Queryable } from '../../db/pool.ts';
import { exportsAsking } from '../../exports/rows/batch-exports.ts';
import { flagsAsking } from '../../flags/rows/definitions.ts';
import { functionsAsking } from '../../functions/rows/functions.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { isUuid } from '../../values/uuid.ts';
import { actorOf } from '../actor.ts';
import { clientSignal } from '../asker.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { freeForm, optionalText, text, timestamp } from '../fields.ts';
import { acceptForms, type FormFields } from '../multipart.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { serialOf } from '../serial.ts';
import { basicUser } from '../tenancy/user-schema.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The cohort of the path, as it was before the body was validated. Only routes with `findsCohort` have it. */
    cohort: CohortRow;
  }
}

const TAGS = ['cohorts'];
const PREFIX = '/api/projects/:project_id/cohorts/';
const READ = 'cohort:read';
const WRITE = 'cohort:write';
const params = z.object({ project_id: z.string() });
const cohortParams = params.extend({ id: z.string() });

const cohort = z
  .object({
    id: z.int(),
    name: z.string(),
    description: z.string(),
    groups: z.array(freeForm).meta({ description: 'An older form of `filters`, always empty.' }),
    deleted: z.boolean(),
    filters: freeForm,
    query: z.null(),
    version: z.int(),
    is_calculating: z
      .boolean()
      .meta({ description: 'The cohort was changed, and its members are not counted again yet.' }),
    created_by: basicUser.nullable(),
    created_at: timestamp,
    last_calculation: timestamp.nullable(),
    errors_calculating: z.int(),
    count: z.int().nullable().meta({
      description:
        'How many persons are in it; if it is not static, at the time of `last_calculation`. Null: not counted yet.',
    }),
    is_static: z.boolean(),
    cohort_type: z.enum(['static', 'person_property']),
    experiment_set: z.array(z.int()),
    upload: z
      .object({ named: z.int(), unknown: z.int(), examples: z.array(z.string()) })
      .optional()
      .meta({
        description:
          'Only when the request named persons: how many, how many of them are unknown, and the first of those.',
      }),
  })
  .meta({ id: 'Cohort' });

const view = (
  { project_id: _, updated_at: _changed, filters, counted_at, count_error, is_outdated, ...row }: CohortRow,
  count: number | null,
): z.output<typeof cohort> => ({
  ...row,
  filters: parseExactJson(filters) as Record<string, unknown>,
  groups: [],
  query: null,
  is_calculating: is_outdated,
  last_calculation: counted_at,
  errors_calculating: count_error === null ? 0 : 1,
  count,
  cohort_type: row.is_static ? 'static' : 'person_property',
  experiment_set: [],
});

const isEmptyList = (value: unknown): boolean =>
  value === '' || value === '[]' || (Array.isArray(value) && value.length === 0);

const input = z
  .object({
    name: text(COHORT_LIMITS.nameCharacters),
    description: optionalText(COHORT_LIMITS.descriptionCharacters),
    is_static: z.boolean(),
    filters: freeForm.meta({
      description:
        '`{"properties": {"type": "OR", "values": […]}}`: a tree of `AND` and `OR` over properties of persons and other cohorts.',
    }),
    deleted: z.boolean().meta({ description: 'True deletes the cohort, and false brings it back.' }),
    csv: z.string().min(1).max(COHORT_LIMITS.uploadBytes).meta({
      description:
        'A file of persons for a static cohort, as a part of a form: a column `person_id`, `distinct_id` or `email`, or a single column of distinct ids. They are added.',
      writeOnly: true,
    }),
    _create_static_person_ids: z.array(z.string().max(400)).max(COHORT_LIMITS.added).meta({
      description: 'Ids or distinct ids of persons for a static cohort. They are added.',
      writeOnly: true,
    }),
    groups: z
      .unknown()
      .refine((groups) => groups === undefined || groups === null || isEmptyList(groups), {
        error: 'This older form of filters is not available. Write the conditions in `filters`.',
      })
      .optional()
      .meta({ description: 'Must be an empty list: an older form of `filters`.', writeOnly: true }),
    _create_in_folder: z.unknown().meta({ description: 'Is ignored.', writeOnly: true }),
  })
  .partial();
const newCohort = input.required({ name: true });

type Input = z.output<typeof input>;

const inputOf = ({ groups: _, _create_in_folder: _folder, csv: _csv, ...rest }: Input) => {
  const { _create_static_person_ids: _ids, ...fields } = rest;
  return fields;
};

/** The persons that a body names. Undefined: none. */
function namedIn({ csv, _create_static_person_ids: ids }: Input): Upload[] {
  const uploads = csv === undefined ? [] : [readUpload(csv, COHORT_LIMITS.uploaded)];
  const given = new Set(ids ?? []);
  const [persons, others] = [[...given].filter(isUuid), [...given].filter((id) => !isUuid(id))];
  if (persons.length > 0) uploads.push({ by: 'person_id', names: new Set(persons) });
  if (others.length > 0) uploads.push({ by: 'distinct_id', names: new Set(others) });
  return uploads;
}

/** Refuses persons for a cohort whose filters decide who is in it. */
function requireStaticFor(uploads: readonly Upload[], isStatic: boolean): void {
  if (uploads.length === 0 || isStatic) return;
  throw errors.validation(
    'invalid_input',
    'Persons can be listed for a static cohort only. Set is_static.',
    'is_static',
  );
}

/** Reads the fields of a form, which are texts, as the schema expects them. */
async function readsForm(request: FastifyRequest): Promise<void> {
  if (!request.headers['content-type']?.startsWith('multipart/')) return;
  const { is_static, filters, ...fields } = request.body as FormFields;
  request.body = {
    ...fields,
    ...(is_static === undefined ? {} : { is_static: /^(?:true|1|on)$/i.test(is_static) }),
    ...(filters === undefined ? {} : { filters: jsonIn(filters) }),
  };
}

function jsonIn(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch {
    throw errors.validation('invalid_input', 'This must be JSON.', 'filters');
  }
}

/** Makes a hook that finds the cohort of the path. A deleted cohort is found only by a body that brings it back. */
function findsCohort(queryable: Queryable) {
  return async (request: FastifyRequest): Promise<void> => {
    const cohortId = serialOf((request.params as { id: string }).id);
    const row = cohortId && (await findCohort(queryable, { projectId: request.project.id, cohortId }));
    const body = request.body as { deleted?: unknown } | null | undefined;
    const returns = request.method === 'PATCH' && body?.deleted === false;
    if (!row || (row.deleted && !returns)) throw errors.notFound();
    request.cohort = row;
  };
}

function requireStatic({ cohort }: FastifyRequest): void {
  if (cohort.is_static) return;
  throw errors.validation(
    'invalid_input',
    'The cohort is not static: its filters decide who is in it.',
    null,
  );
}

/** Adds the routes that create, read and change cohorts, and the members of static ones. */
export function cohortRoutes(app: App, deps: ApiDependencies): void {
  // Only these routes read forms with files.
  app.register(async (scope) => {
    acceptForms(scope, COHORT_LIMITS.uploadBytes);
    addRoutes(scope.withTypeProvider<ZodTypeProvider>(), deps);
  });
}

function addRoutes(app: App, deps: ApiDependencies): void {
  const { pool, config } = deps;
  const commands: CohortCommandDependencies = { pool, flagsAsking, exportsAsking, functionsAsking };
  const find = findsCohort(pool);
  async function shown(projectId: number, rows: readonly CohortRow[]) {
    const ids = rows.filter((row) => row.is_static).map((row) => row.id);
    const counts = ids.length > 0 ? await countMembers(pool, projectId, ids) : new Map<number, number>();
    return rows.map((row) => view(row, row.is_static ? (counts.get(row.id) ?? 0) : row.count));
  }
  const one = async (projectId: number, row: CohortRow) =>
    (await shown(projectId, [row]))[0] as z.output<typeof cohort>;

  async function withUpload(
    request: FastifyRequest,
    reply: FastifyReply,
    row: CohortRow,
    uploads: readonly Upload[],
  ): Promise<z.output<typeof cohort>> {
    const sum = { named: 0, unknown: 0, examples: [] as string[] };
    const signal = clientSignal(reply);
    for (const upload of uploads) {
      const added = await addNamed({ pool }, actorOf(request), row, upload, signal);
      sum.named += added.named;
      sum.unknown += added.unknown;
      sum.examples.push(...added.examples.slice(0, 10 - sum.examples.length));
    }
    const shownRow = await one(request.project.id, row);
    return uploads.length > 0 ? { ...shownRow, upload: sum } : shownRow;
  }

  app.get(
    PREFIX,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'List cohorts, newest first',
        params,
        querystring: pageQuery.extend({ search: z.string().max(400).optional() }),
        response: { 200: page(cohort) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const { search } = request.query;
      const { count, rows } = await listCohorts(pool, request.project.id, { ...wanted, search });
      const results = await shown(request.project.id, rows);
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, results);
    },
  );

  app.post(
    PREFIX,
    {
      config: { access: { scope: WRITE }, keepsNumbers: true },
      preValidation: readsForm,
      schema: {
        tags: TAGS,
        summary: 'Create a cohort',
        params,
        body: newCohort,
        response: { 201: cohort },
      },
    },
    async (request, reply) => {
      const { name, ...rest } = request.body;
      const uploads = namedIn(rest);
      requireStaticFor(uploads, rest.is_static ?? false);
      const row = await createCohort(commands, actorOf(request), request.project.id, {
        ...inputOf(rest),
        name,
      });
      reply.code(201);
      return withUpload(request, reply, row, uploads);
    },
  );

  app.get(
    `${PREFIX}:id/`,
    {
      config: { access: { scope: READ }, isNeverDeleted: true },
      preValidation: find,
      schema: { tags: TAGS, summary: 'Retrieve a cohort', params: cohortParams, response: { 200: cohort } },
    },
    async (request) => one(request.project.id, request.cohort),
  );

  for (const [method, summary] of [
    ['PUT', 'Change a cohort'],
    ['PATCH', 'Change some fields of a cohort; delete it, or bring it back'],
  ] as const) {
    app.route({
      method,
      url: `${PREFIX}:id/`,
      config: { access: { scope: WRITE }, keepsNumbers: true },
      preValidation: [readsForm, find],
      schema: { tags: TAGS, summary, params: cohortParams, body: input, response: { 200: cohort } },
      handler: async (request, reply) => {
        const { cohort: row, project, body } = request;
        const uploads = namedIn(body);
        requireStaticFor(uploads, row.is_static);
        const key = { projectId: project.id, cohortId: row.id };
        const after = await changeCohort(commands, actorOf(request), key, inputOf(body));
        return withUpload(request, reply, after, uploads);
      },
    });
  }

  app.get(
    `${PREFIX}:id/persons/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'List the members of a cohort',
        description: 'Those of a cohort that is not static are as of its `last_calculation`.',
        params: cohortParams,
        querystring: pageQuery,
        response: { 200: page(z.object({ id: z.uuid(), uuid: z.uuid() })) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const { count, ids } = await listMembers(pool, request.project.id, request.cohort.id, wanted);
      const results = ids.map((id) => ({ id, uuid: id }));
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, results);
    },
  );

  const user = z.object({ id: z.int(), name: z.string() });

  app.get(
    `${PREFIX}:id/used_by/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary:
          'List the feature flags, the batch exports, the functions and the other cohorts that use a cohort',
        params: cohortParams,
        response: {
          200: z.object({
            feature_flags: z.array(user.extend({ key: z.string(), active: z.boolean() })),
            batch_exports: z.array(z.object({ id: z.uuid(), name: z.string(), paused: z.boolean() })),
            functions: z.array(z.object({ id: z.uuid(), name: z.string(), enabled: z.boolean() })),
            cohorts: z.array(user),
          }),
        },
      },
    },
    async ({ project, cohort: { id } }) => ({
      feature_flags: await flagsAsking(pool, project.id, id),
      batch_exports: await exportsAsking(pool, project.id, id),
      functions: await functionsAsking(pool, project.id, id),
      cohorts: await cohortsAsking(pool, project.id, id),
    }),
  );

  const added = z.array(z.string().max(400)).max(COHORT_LIMITS.added).default([]);

  // Clients PATCH; POST is kept for those who know the route from here.
  for (const method of ['PATCH', 'POST'] as const) {
    app.route({
      method,
      url: `${PREFIX}:id/add_persons_to_static_cohort/`,
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Add persons to a static cohort',
        description: 'Persons who are not known are left out. If none is known, the request is refused.',
        params: cohortParams,
        body: z
          .object({
            person_ids: added.meta({ description: 'Ids of persons.' }),
            distinct_ids: added.meta({ description: 'Distinct ids of persons.' }),
          })
          .refine(({ person_ids, distinct_ids }) => person_ids.length + distinct_ids.length > 0, {
            error: 'This must not be empty.',
            path: ['person_ids'],
          })
          .meta({ minProperties: 1 }),
        response: {
          200: z.object({
            success: z.literal(true),
            unknown: z.int().meta({ description: 'How many of the ids belong to no person.' }),
            examples: z.array(z.string()).meta({ description: 'The first of them.' }),
          }),
        },
      },
      handler: async (request) => {
        requireStatic(request);
        const { cohort: row, body } = request;
        const { person_ids, distinct_ids } = body;
        const wrong = person_ids.find((id) => !isUuid(id));
        if (wrong !== undefined) {
          throw errors.validation(
            'invalid_input',
            `"${wrong.slice(0, 60)}" is not the id of a person.`,
            'person_ids',
          );
        }
        const ids = { personIds: person_ids, distinctIds: distinct_ids };
        const unknown = await addPersons({ pool }, actorOf(request), row, ids);
        return { success: true as const, unknown: unknown.length, examples: unknown.slice(0, 10) };
      },
    });
  }

  app.patch(
    `${PREFIX}:id/remove_person_from_static_cohort/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Take a person out of a static cohort',
        params: cohortParams,
        body: z.object({ person_id: z.uuid() }),
        response: { 200: z.object({ success: z.literal(true) }) },
      },
    },
    async (request) => {
      requireStatic(request);
      const { cohort: row, body } = request;
      await removePerson({ pool }, actorOf(request), row, body.person_id);
      return { success: true as const };
    },
  );
}
