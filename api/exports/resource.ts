import { z } from 'zod';
import { mapInTurns } from '../../db/loop-turns.ts';
import { changeExport } from '../../exports/commands/change.ts';
import { createExport } from '../../exports/commands/create.ts';
import { removeExport } from '../../exports/commands/remove.ts';
import { type BatchExportRow, keyOf, listBatchExports } from '../../exports/rows/batch-exports.ts';
import { findHealth } from '../../exports/rows/health.ts';
import { latestRuns } from '../../exports/rows/run-lists.ts';
import { actorOf } from '../actor.ts';
import { clientSignal } from '../asker.ts';
import type { App, ExportRouteDependencies } from '../dependencies.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import {
  batchExport,
  batchExportPatch,
  batchExportView,
  newBatchExport,
  newOrganizationBatchExport,
  wholeBatchExport,
} from './export-schema.ts';
import { findsExport } from './find-export.ts';
import { chooseProject, PLACES, projectIdsOf, READ, WRITE } from './places.ts';
import { runView } from './run-schema.ts';

const TAGS = ['batch exports'];
const LATEST_RUNS = 10;

/** Adds the routes that create, read, change and delete exports, under projects and under organizations. */
export function resourceRoutes(app: App, deps: ExportRouteDependencies): void {
  const { pool, temporal, publicUrl } = deps;
  const find = findsExport(pool);

  const views = async (rows: readonly BatchExportRow[]) => {
    const keys = rows.map(keyOf);
    const [runs, health] = await Promise.all([latestRuns(pool, keys, LATEST_RUNS), findHealth(pool, keys)]);
    return mapInTurns(rows, (row) =>
      batchExportView(
        row,
        (runs.get(row.id) ?? []).map((run) => runView(run, temporal.runUrl)),
        health.get(row.id),
      ),
    );
  };
  const view = async (row: BatchExportRow) => (await views([row]))[0] as z.output<typeof batchExport>;

  for (const { prefix, params, access, of } of PLACES) {
    const exportParams = params.extend({ id: z.string() });

    app.get(
      prefix,
      {
        config: { access: { scope: READ, ...access } },
        schema: {
          tags: TAGS,
          summary: `List batch exports ${of}, newest first`,
          params,
          querystring: pageQuery,
          response: { 200: page(batchExport) },
        },
      },
      async (request) => {
        const wanted = pageOf(request.query);
        const { count, rows } = await listBatchExports(pool, projectIdsOf(request), wanted);
        return paginated(request, publicUrl, wanted, count, await views(rows));
      },
    );

    app.post(
      prefix,
      {
        config: { access: { scope: WRITE, ...access } },
        schema: {
          tags: TAGS,
          summary: `Create a batch export ${of}`,
          params,
          body: 'project_id' in params.shape ? newBatchExport : newOrganizationBatchExport,
          response: { 201: batchExport },
        },
      },
      async (request, reply) => {
        const row = await createExport(
          deps,
          actorOf(request),
          chooseProject(request),
          request.body,
          clientSignal(reply),
        );
        reply.code(201);
        return view(row);
      },
    );

    app.get(
      `${prefix}:id/`,
      {
        config: { access: { scope: READ, ...access } },
        preValidation: find,
        schema: {
          tags: TAGS,
          summary: `Retrieve a batch export ${of}`,
          params: exportParams,
          response: { 200: batchExport },
        },
      },
      async ({ batchExport: row }) => view(row),
    );

    for (const [method, body, summary] of [
      ['PUT', wholeBatchExport, `Change a batch export ${of}; requires name, destination and interval`],
      ['PATCH', batchExportPatch, `Change some fields of a batch export ${of}`],
    ] as const) {
      app.route({
        method,
        url: `${prefix}:id/`,
        config: { access: { scope: WRITE, ...access } },
        preValidation: find,
        schema: {
          tags: TAGS,
          summary,
          description:
            "Fields, and keys of the destination's configuration, that you leave out keep their values, including secrets. If a key changes where secrets are sent, such as the host, send the secrets along.",
          params: exportParams,
          body,
          response: { 200: batchExport },
        },
        handler: async (request, reply) => {
          const { batchExport, body } = request;
          const signal = clientSignal(reply);
          return view(await changeExport(deps, actorOf(request), keyOf(batchExport), body, signal));
        },
      });
    }

    app.delete(
      `${prefix}:id/`,
      {
        config: { access: { scope: WRITE, ...access } },
        preValidation: find,
        schema: {
          tags: TAGS,
          summary: `Delete a batch export ${of}`,
          description:
            'Cancels the runs and backfills in progress. What the batch export has exported stays.',
          params: exportParams,
          response: { 204: z.null() },
        },
      },
      async (request, reply) => {
        await removeExport(deps, actorOf(request), request.batchExport);
        return reply.code(204).send(null);
      },
    );
  }
}
