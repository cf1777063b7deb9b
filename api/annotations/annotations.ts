import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { changeAnnotation, createAnnotation } from '../../annotations/commands/annotations.ts';
import { type AnnotationRow, findAnnotation, listAnnotations } from '../../annotations/rows/annotations.ts';
import { ANNOTATION_SCOPES, type AnnotationScope } from '../../annotations/rules/annotations.ts';
import { actorOf } from '../actor.ts';
import { clientSignal } from '../asker.ts';
import { bounded } from '../bounded-query.ts';
import { bringsBack } from '../brings-back.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { instantOrDate } from '../fields.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { serialOf } from '../serial.ts';
import { annotation, annotationInput, annotationView } from './annotation-schema.ts';

const TAGS = ['annotations'];
const PREFIX = '/api/projects/:project_id/annotations/';
const READ = 'annotation:read';
const WRITE = 'annotation:write';
/** More than elsewhere: whoever draws a chart wants all of its time. */
const USUAL = 1_000;
const params = z.object({ project_id: z.string() });
const annotationParams = params.extend({ id: z.string() });

const MOMENT = { format: 'date-time' } as const;

const listQuery = pageQuery.extend({
  search: z
    .string()
    .max(400)
    .optional()
    .meta({ description: 'Words that the content has, each of them, in any case.' }),
  scope: z
    .string()
    .optional()
    .meta({
      enum: ['insight', ...ANNOTATION_SCOPES],
      description: '`insight` is another name of `dashboard_item`.',
    }),
  hidden_in_user_interface: z.string().optional().meta({
    description: '`true` or `1`: only hidden ones. Any other text: only those that are not hidden.',
  }),
  date_from: z
    .string()
    .optional()
    .meta({ ...MOMENT, description: 'Only annotations about this time or a later one.' }),
  date_to: z
    .string()
    .optional()
    .meta({ ...MOMENT, description: 'Only annotations about this time or an earlier one.' }),
});

const rangeError = (what: string, name: string) =>
  errors.validation('invalid_input', `Invalid date range: ${what}`, name);

function momentOf(text: string | undefined, name: string): string | undefined {
  if (text === undefined || text === '') return undefined;
  const { data, success } = instantOrDate.safeParse(text);
  if (!success) throw rangeError(`${name} must be a valid ISO 8601 date`, name);
  return data;
}

function scopeOf(text: string | undefined): AnnotationScope | undefined {
  if (text === undefined || text === '') return undefined;
  const found = ANNOTATION_SCOPES.find((one) => one === (text === 'insight' ? 'dashboard_item' : text));
  if (!found) throw errors.validation('invalid_input', `Invalid scope: ${text}`, 'scope');
  return found;
}

/** Adds the routes that create, read and change annotations. */
export function annotationRoutes(app: App, { pool, readingPool, config }: ApiDependencies): void {
  /** Finds the annotation of the path. A deleted one is found only by a body that brings it back. */
  async function findOne(request: FastifyRequest): Promise<AnnotationRow> {
    const annotationId = serialOf((request.params as { id: string }).id);
    const row = annotationId && (await findAnnotation(pool, { projectId: request.project.id, annotationId }));
    if (!row || (row.deleted && !bringsBack(request))) throw errors.notFound();
    return row;
  }

  app.get(
    PREFIX,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'List annotations by the times that they are about, the latest first',
        params,
        querystring: listQuery,
        response: { 200: page(annotation) },
      },
    },
    async (request, reply) => {
      const wanted = pageOf(request.query, USUAL);
      const { search = '', scope, hidden_in_user_interface: hidden } = request.query;
      const from = momentOf(request.query.date_from, 'date_from');
      const to = momentOf(request.query.date_to, 'date_to');
      if (from !== undefined && to !== undefined && from > to) {
        throw rangeError('date_from must be before date_to', 'date_from');
      }
      const query = {
        search: search.split(/\s+/).filter((word) => word !== ''),
        scope: scopeOf(scope),
        isHidden: hidden === undefined ? undefined : ['true', '1'].includes(hidden.toLowerCase()),
        from,
        to,
      };
      const { count, rows } = await bounded(
        listAnnotations(
          readingPool,
          { ...wanted, ...query, projectId: request.project.id },
          clientSignal(reply),
        ),
        'Narrow it with `date_from` and `date_to`.',
      );
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows.map(annotationView));
    },
  );

  app.post(
    PREFIX,
    {
      config: { access: { scope: WRITE } },
      schema: {
        tags: TAGS,
        summary: 'Create an annotation',
        params,
        body: annotationInput,
        response: { 201: annotation },
      },
    },
    async (request, reply) => {
      const made = await createAnnotation({ pool }, actorOf(request), request.project.id, request.body);
      reply.code(201);
      return annotationView(made);
    },
  );

  app.get(
    `${PREFIX}:id/`,
    {
      config: { access: { scope: READ }, isNeverDeleted: true },
      schema: {
        tags: TAGS,
        summary: 'Retrieve an annotation',
        description: 'There is no DELETE: `PATCH` with `deleted: true` hides an annotation.',
        params: annotationParams,
        response: { 200: annotation },
      },
    },
    async (request) => annotationView(await findOne(request)),
  );

  app.patch(
    `${PREFIX}:id/`,
    {
      config: { access: { scope: WRITE } },
      // Looks it up before the body is validated, so that an unknown one is a 404 whatever the body says.
      preValidation: async (request) => {
        await findOne(request);
      },
      schema: {
        tags: TAGS,
        summary: 'Change an annotation, hide it or bring it back',
        description: 'Fields that you leave out keep their values.',
        params: annotationParams,
        body: annotationInput,
        response: { 200: annotation },
      },
    },
    async (request) => {
      const key = { projectId: request.project.id, annotationId: Number(request.params.id) };
      return annotationView(await changeAnnotation({ pool }, actorOf(request), key, request.body));
    },
  );
}
