import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { addNamed } from '../../cohorts/commands/add-named.ts';
import { changeCohort, createCohort } from '../../cohorts/commands/save.ts';
import { type CohortRow, cohortsAsking, listCohorts } from '../../cohorts/rows/cohorts.ts';
import { countMembers } from '../../cohorts/rows/members.ts';
import { COHORT_LIMITS } from '../../cohorts/rules/limits.ts';
import type { Upload } from '../../cohorts/rules/upload.ts';
import { mapInTurns } from '../../db/loop-turns.ts';
import { isStatementTimeout, reading } from '../../db/reading.ts';
import { exportsAsking } from '../../exports/rows/batch-exports.ts';
import { flagsAsking } from '../../flags/rows/definitions.ts';
import { functionsAsking } from '../../functions/rows/functions.ts';
import { actorOf } from '../actor.ts';
import { askerOf, clientSignal } from '../asker.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { acceptForms } from '../multipart.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { serialOf } from '../serial.ts';
import { addActivityOf } from '../tenancy/activity-of.ts';
import { cohortMemberRoutes } from './cohort-members.ts';
import {
  cohort,
  cohortInput,
  cohortView,
  inputOf,
  namedIn,
  newCohort,
  readsForm,
  requireStaticFor,
} from './cohort-schema.ts';
import { cohortCommands } from './dependencies.ts';
import { COHORTS_PREFIX, cohortParams, findsCohort } from './find-cohort.ts';

const TAGS = ['cohorts'];
const READ = 'cohort:read';
const WRITE = 'cohort:write';
const params = z.object({ project_id: z.string() });

/** Adds the routes that create, read and change cohorts, and the members of static ones. */
export function cohortRoutes(app: App, deps: ApiDependencies): void {
  // Only these routes read forms with files.
  app.register(async (scope) => {
    acceptForms(scope, COHORT_LIMITS.uploadBytes);
    addRoutes(scope.withTypeProvider<ZodTypeProvider>(), deps);
  });
}

function addRoutes(app: App, deps: ApiDependencies): void {
  const { pool, readingPool, config } = deps;
  const commands = cohortCommands(deps);
  const find = findsCohort(pool);

  /** Counts the members of static cohorts. Where they are too many to count while somebody waits, none is counted. */
  async function countsOf(request: FastifyRequest, reply: FastifyReply, ids: readonly number[]) {
    if (ids.length === 0) return new Map<number, number>();
    try {
      return await reading(readingPool, askerOf(request, reply), (client) =>
        countMembers(client, request.project.id, ids),
      );
    } catch (error) {
      if (!isStatementTimeout(error)) throw error;
      return undefined;
    }
  }
  async function shown(request: FastifyRequest, reply: FastifyReply, rows: readonly CohortRow[]) {
    const listed = rows.filter((row) => row.is_static).map((row) => row.id);
    const counts = await countsOf(request, reply, listed);
    const countOf = (row: CohortRow) => (counts ? (counts.get(row.id) ?? 0) : null);
    return mapInTurns(rows, (row) => cohortView(row, row.is_static ? countOf(row) : row.count));
  }
  const one = async (request: FastifyRequest, reply: FastifyReply, row: CohortRow) =>
    (await shown(request, reply, [row]))[0] as z.output<typeof cohort>;

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
    const shownRow = await one(request, reply, row);
    return uploads.length > 0 ? { ...shownRow, upload: sum } : shownRow;
  }

  app.get(
    COHORTS_PREFIX,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'List cohorts, newest first',
        params,
        querystring: pageQuery.extend({
          search: z.string().max(400).optional().meta({ description: 'A part of the name.' }),
          type: z.enum(['static', 'dynamic']).optional(),
          created_by_id: z.string().max(40).optional().meta({ description: 'The id of a user.' }),
          hide_behavioral_cohorts: z.string().max(40).optional().meta({
            description: 'Changes nothing: no cohort asks what persons did.',
          }),
        }),
        response: { 200: page(cohort) },
      },
    },
    async (request, reply) => {
      const wanted = pageOf(request.query);
      const { search, type, created_by_id: createdBy } = request.query;
      const { count, rows } = await listCohorts(pool, request.project.id, {
        ...{ ...wanted, search },
        isStatic: type === undefined ? undefined : type === 'static',
        createdBy: createdBy === undefined ? undefined : (serialOf(createdBy) ?? 0),
      });
      const results = await shown(request, reply, rows);
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, results);
    },
  );

  app.post(
    COHORTS_PREFIX,
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
      const uploads = await namedIn(rest);
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
    `${COHORTS_PREFIX}:id/`,
    {
      config: { access: { scope: READ }, isNeverDeleted: true },
      preValidation: find,
      schema: { tags: TAGS, summary: 'Retrieve a cohort', params: cohortParams, response: { 200: cohort } },
    },
    async (request, reply) => one(request, reply, request.cohort),
  );

  for (const [method, summary] of [
    ['PUT', 'Change a cohort'],
    ['PATCH', 'Change some fields of a cohort; delete it, or bring it back'],
  ] as const) {
    app.route({
      method,
      url: `${COHORTS_PREFIX}:id/`,
      config: { access: { scope: WRITE }, keepsNumbers: true },
      preValidation: [readsForm, find],
      schema: { tags: TAGS, summary, params: cohortParams, body: cohortInput, response: { 200: cohort } },
      handler: async (request, reply) => {
        const { cohort: row, project, body } = request;
        const uploads = await namedIn(body);
        requireStaticFor(uploads, row.is_static);
        const key = { projectId: project.id, cohortId: row.id };
        const after = await changeCohort(commands, actorOf(request), key, inputOf(body));
        return withUpload(request, reply, after, uploads);
      },
    });
  }

  const user = z.object({ id: z.int(), name: z.string() });

  app.get(
    `${COHORTS_PREFIX}:id/used_by/`,
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
            batch_exports: z.array(z.object({ id: z.guid(), name: z.string(), paused: z.boolean() })),
            functions: z.array(z.object({ id: z.guid(), name: z.string(), enabled: z.boolean() })),
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

  addActivityOf(app, deps, {
    ...{ prefix: COHORTS_PREFIX, scope: 'Cohort', tag: TAGS[0] as string },
    ...{ one: 'a cohort', many: 'cohorts', find },
    idOf: (request) => request.cohort.id,
  });
  cohortMemberRoutes(app, deps);
}
