import { isStatementTimeout, refusesQuery } from '../db/reading.ts';
import { ModelError } from './model-query.ts';

/** The settings of an export that can make a statement that Postgres refuses. */
export interface Written {
  filters: unknown;
  hogql_query: string | null;
}

/**
 * Turns an error that the filters or columns of an export cause into a ModelError. Returns other errors as they are.
 */
export function queryFault(error: unknown, { filters, hogql_query: query }: Written): unknown {
  const isWritten = query !== null || (Array.isArray(filters) && filters.length > 0);
  if (!isWritten || !refusesQuery(error)) return error;
  const { message } = error as Error;
  return query !== null
    ? new ModelError('hogql_query', `Invalid HogQL query: ${message}`)
    : new ModelError('filters', `One or more provided filters are invalid: ${message}`);
}

/**
 * Turns an error of planning into a ModelError as `queryFault` does, and a time-out too: Postgres computes constant
 * expressions while it plans, and these must not take long.
 */
export function planFault(error: unknown, written: Written): unknown {
  if (!isStatementTimeout(error)) return queryFault(error, written);
  return queryFault({ code: '54000', message: 'it takes too long to plan' }, written);
}
