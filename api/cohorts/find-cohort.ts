import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type CohortRow, findCohort } from '../../cohorts/rows/cohorts.ts';
import type { Queryable } from '../../db/pool.ts';
import { bringsBack } from '../brings-back.ts';
import { errors } from '../errors.ts';
import { serialOf } from '../serial.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The cohort of the path, as it was before the body was validated. Only routes with `findsCohort` have it. */
    cohort: CohortRow;
  }
}

export const COHORTS_PREFIX = '/api/projects/:project_id/cohorts/';
export const cohortParams = z.object({ project_id: z.string(), id: z.string() });

/** Makes a hook that finds the cohort of the path. A deleted cohort is found only by a body that brings it back. */
export function findsCohort(queryable: Queryable) {
  return async (request: FastifyRequest): Promise<void> => {
    const cohortId = serialOf((request.params as { id: string }).id);
    const row = cohortId && (await findCohort(queryable, { projectId: request.project.id, cohortId }));
    if (!row || (row.deleted && !bringsBack(request))) throw errors.notFound();
    request.cohort = row;
  };
}
