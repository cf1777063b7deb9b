import type { FastifyRequest } from 'fastify';
import type { Queryable } from '../../db/pool.ts';
import { type BatchExportRow, findBatchExportIn } from '../../exports/rows/batch-exports.ts';
import { findRun } from '../../exports/rows/run-lists.ts';
import type { RunRow } from '../../exports/rows/runs.ts';
import { isUuid } from '../../values/uuid.ts';
import { errors } from '../errors.ts';
import { projectIdsOf } from './places.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The export of the path, as it was before the body was validated. Only routes with `findsExport` have it. */
    batchExport: BatchExportRow;
  }
}

/**
 * Makes a hook that finds the export of the path. It runs before the body is validated, so the answer for an unknown
 * export is 404 whatever the body contains.
 */
export function findsExport(queryable: Queryable, refusal: (id: string) => string = () => 'Not found.') {
  return async (request: FastifyRequest): Promise<void> => {
    const { id } = request.params as { id: string };
    const row = isUuid(id) ? await findBatchExportIn(queryable, projectIdsOf(request), id) : undefined;
    if (!row) throw errors.notFound(refusal(id));
    request.batchExport = row;
  };
}

/** Makes a function that finds the run of the path. The run must belong to the export of the path. */
export function findsRun(queryable: Queryable) {
  return async (request: FastifyRequest): Promise<RunRow> => {
    const { run_id: runId } = request.params as { run_id: string };
    const { project_id: projectId, id } = request.batchExport;
    const row = isUuid(runId) ? await findRun(queryable, { projectId, runId }) : undefined;
    if (row?.batch_export_id !== id) throw errors.notFound();
    return row;
  };
}
