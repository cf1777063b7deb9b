import { refuse } from '../../refusals.ts';
import { QueryError } from '../rules/request.ts';

/**
 * Does work whose query somebody has written, or has chosen the parts of. What is wrong with it becomes a refusal that names its
 * field. Null: nobody has written the query, so there is no field to name.
 */
export async function refusing<T>(work: () => Promise<T>, field?: null): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    throw refuse.invalid(field === null ? null : error.field, error.message, { reason: error.excerpt });
  }
}
