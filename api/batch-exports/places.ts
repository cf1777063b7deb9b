import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Queryable } from '../../db/pool.ts';
import { isUuid } from '../../db/uuid.ts';
import { type BatchExportRow, type ExportKey, findBatchExportIn } from '../../exports/rows/batch-exports.ts';
import { errors } from '../errors.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The export of the path, as it was before the body was looked at; only on routes that look it up. */
    batchExport: BatchExportRow;
  }
}

/** Exports stand under their project, and under its organization beside those of its other projects. */
export const PLACES = [
  {
    prefix: '/api/projects/:project_id/batch_exports/',
    params: z.object({ project_id: z.string() }),
    of: 'of a project',
    access: {},
  },
  {
    prefix: '/api/organizations/:organization_id/batch_exports/',
    params: z.object({ organization_id: z.string() }),
    of: 'of all projects of an organization',
    access: { narrowsToProjects: true },
  },
] as const;
/** Where runs and backfills stand. */
export const PROJECT_PLACE = PLACES[0];

export const READ = 'batch_export:read';
export const WRITE = 'batch_export:write';

/** The projects whose exports a request may see. */
export function projectIdsOf({ project, organization, caller }: FastifyRequest): number[] {
  if (project) return [project.id];
  const bounds = caller.key.scoped_teams;
  return organization.projects.map(({ id }) => id).filter((id) => bounds.length === 0 || bounds.includes(id));
}

/** Where the activity log is to have an entry. */
export function placeOf({ project, organization }: FastifyRequest, projectId: number) {
  return { organizationId: project ? project.organization_id : organization.id, projectId };
}

export const keyOf = (row: Pick<BatchExportRow, 'project_id' | 'id'>): ExportKey => ({
  projectId: row.project_id,
  exportId: row.id,
});

/** Looks up the export of the path before the body is validated. */
export function findsExport(queryable: Queryable, refusal: (id: string) => string = () => 'Not found.') {
  return async (request: FastifyRequest): Promise<void> => {
    const { id } = request.params as { id: string };
    const row = isUuid(id) ? await findBatchExportIn(queryable, projectIdsOf(request), id) : undefined;
    if (!row) throw errors.notFound(refusal(id));
    request.batchExport = row;
  };
}
