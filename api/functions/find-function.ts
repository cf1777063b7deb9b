import type { FastifyRequest } from 'fastify';
import type { Queryable } from '../../db/pool.ts';
import { findFunction, type ShownFunctionRow } from '../../functions/rows/functions.ts';
import { isUuid } from '../../values/uuid.ts';
import { errors } from '../errors.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The function of the path, as it was before the body was validated. Only routes with `findsFunction` have it. */
    hogFunction: ShownFunctionRow;
  }
}

/**
 * Makes a hook that finds the function of the path. It runs before the body is validated, so the answer for an unknown
 * function is 404 whatever the body contains.
 */
export const findsFunction =
  (queryable: Queryable, { deleted = false } = {}) =>
  async (request: FastifyRequest): Promise<void> => {
    const { id } = request.params as { id: string };
    const key = { projectId: request.project.id, functionId: id };
    const row = isUuid(id) ? await findFunction(queryable, key, { deleted }) : undefined;
    if (!row) throw errors.notFound();
    request.hogFunction = row;
  };
