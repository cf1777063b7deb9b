import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
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
const newBackfill = z
  .object({
    start_at: bound('Where to begin. Hours and less: a time with its zone; days and weeks: a date.'),
    end_at: bound('Where to end, in the same form. Null only for `HTTP` and `NoOp`: up to now.'),
  })
  // A missing one is answered in the words that clients know.
  .meta({ required: ['start_at', 'end_at'] });
const listQuery = cursorQuery.extend({
  ordering: z.enum(ORDERS).optional().meta({ description: 'Default: `-created_at`.' }),
});
const begun = (description: string) => z.object({ backfill_id: z.string().meta({ description }) });

/** Intervals of the past, exported again or for the first time. */
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
        summary: 'Export a range of the past',
        description:
          'Whole intervals that contain the range, as far as they are over. A range that is being filled already is not begun again.',
        params: exportParams,
        body: newBackfill,
        response: { 201: begun('The backfill.') },
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
        summary: 'Export a range of the past; `backfills/` is its newer name',
        deprecated: true,
        params: exportParams,
        body: newBackfill,
        response: { 200: begun('The workflow of the backfill.') },
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
        description: 'By its id, or by its workflow.',
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
        summary: 'Cancel a backfill that is under way, with its runs',
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
