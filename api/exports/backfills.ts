import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { DESTINATION_TYPES, takesOpenEnd } from '../../destinations/registry.ts';
import { backfillExport } from '../../exports/commands/backfill.ts';
import { cancelBackfill } from '../../exports/commands/cancel.ts';
import { type BackfillRow, findBackfillOf, listBackfills } from '../../exports/rows/backfills.ts';
import { keyOf } from '../../exports/rows/batch-exports.ts';
import { actorOf } from '../actor.ts';
import { cursorPage, cursorQuery, readCursorPage } from '../cursor-pages.ts';
import type { App, ExportRouteDependencies } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { findsExport } from './find-export.ts';
import { PROJECT_PLACE, READ, WRITE } from './places.ts';
import { backfill, backfillView } from './run-schema.ts';

const TAGS = ['batch exports'];
const PAGE = 50;
const ORDERS = ['-created_at', 'created_at', '-start_at', 'start_at'] as const;

const bound = (description: string) =>
  z
    .unknown()
    .optional()
    .meta({ anyOf: [{ type: 'string' }, { type: 'null' }], description });
const OPEN_ENDED = DESTINATION_TYPES.filter(takesOpenEnd)
  .map((type) => `\`${type}\``)
  .join(' and ');
const newBackfill = z
  .object({
    start_at: bound(
      'Where the range begins. Intervals of an hour and less take a time with a zone. Days and weeks take a date.',
    ),
    end_at: bound(
      `Where the range ends, in the same form. Only for ${OPEN_ENDED} it may be null, which means now.`,
    ),
  })
  // Both are required. The command refuses a body without them, because clients know its messages.
  .meta({ required: ['start_at', 'end_at'] });
const listQuery = cursorQuery.extend({
  ordering: z.enum(ORDERS).optional().meta({ description: 'Default: `-created_at`.' }),
});
const begun = (description: string) => z.object({ backfill_id: z.string().meta({ description }) });

/** Adds the routes of backfills, which export intervals of the past. */
export function backfillRoutes(app: App, deps: ExportRouteDependencies): void {
  const { pool, publicUrl } = deps;
  const { prefix, params } = PROJECT_PLACE;
  const exportParams = params.extend({ id: z.string() });
  const backfillParams = exportParams.extend({ backfill_id: z.string() });
  const find = findsExport(pool);
  const findForBackfill = findsExport(pool, () => 'BatchExport not found.');
  const backfills = `${prefix}:id/backfills/`;

  const findOne = async (request: FastifyRequest): Promise<BackfillRow> => {
    const { backfill_id: id } = request.params as { backfill_id: string };
    const row = id.includes('\0') ? undefined : await findBackfillOf(pool, keyOf(request.batchExport), id);
    if (!row) throw errors.notFound();
    return row;
  };

  const create = async (request: FastifyRequest, body: z.output<typeof newBackfill>) => {
    const begun = await backfillExport(deps, actorOf(request), request.batchExport, body);
    return begun.backfill;
  };

  app.get(
    backfills,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'List the backfills of a batch export',
        params: exportParams,
        querystring: listQuery,
        response: { 200: cursorPage(backfill) },
      },
    },
    async (request) => {
      const { cursor, limit = PAGE, ordering = '-created_at' } = request.query;
      const column = ordering.endsWith('start_at') ? 'start_at' : 'created_at';
      const { rows, ...links } = await readCursorPage<BackfillRow>({
        request,
        publicUrl,
        cursor,
        ascending: !ordering.startsWith('-'),
        read: ({ position, ascending }) =>
          listBackfills(pool, {
            ...keyOf(request.batchExport),
            ordering: column,
            ascending,
            limit,
            ...(position ? { position } : {}),
          }),
        positionOf: (row) => ({ value: row[column], id: row.id }),
      });
      return { ...links, results: rows.map(backfillView) };
    },
  );

  app.post(
    backfills,
    {
      config: { access: { scope: WRITE } },
      preValidation: findForBackfill,
      schema: {
        tags: TAGS,
        summary: 'Create a backfill, which exports a range of the past',
        description:
          'Exports the whole intervals that overlap the range and have ended. If a backfill of the same range is in ' +
          'progress, the answer is that backfill.',
        params: exportParams,
        body: newBackfill,
        response: { 201: begun('The id of the backfill.') },
      },
    },
    async (request, reply) => {
      const made = await create(request, request.body);
      reply.code(201);
      return { backfill_id: made.id };
    },
  );

  app.post(
    `${prefix}:id/backfill/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: findForBackfill,
      schema: {
        tags: TAGS,
        summary: 'Create a backfill; use `backfills/` instead',
        deprecated: true,
        params: exportParams,
        body: newBackfill,
        response: { 200: begun('The id of the workflow of the backfill.') },
      },
    },
    async (request) => ({ backfill_id: (await create(request, request.body)).workflow_id }),
  );

  app.get(
    `${backfills}:backfill_id/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Retrieve a backfill, with its progress',
        description: '`backfill_id` is the id of the backfill or the id of its workflow.',
        params: backfillParams,
        response: { 200: backfill },
      },
    },
    async (request) => backfillView(await findOne(request)),
  );

  app.post(
    `${backfills}:backfill_id/cancel/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Cancel a backfill and its runs',
        params: backfillParams,
        response: { 200: z.object({ cancelled: z.literal(true) }) },
      },
    },
    async (request) => {
      await cancelBackfill(deps, actorOf(request), await findOne(request));
      return { cancelled: true as const };
    },
  );
}
