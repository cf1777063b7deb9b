import { isStatementTimeout } from '../db/reading.ts';
import { ModelError } from './model-query.ts';

/** What of an export can make a statement that Postgres does not run. */
export interface Written {
  filters: unknown;
  hogql_query: string | null;
}

/**
 * What Postgres says of a value, of a limit, or of the statement itself, made of an export's filters and columns: it says
 * the same the next time. The data's fault: 22; the statement's: 42 and 0A; what is too large or too much: 54.
 */
const STATES = /^(22|42|54|0A)...$/;
/** A value of a gigabyte has no state of its own. */
const TOO_LARGE = /^invalid memory alloc request size/;

/** Whether Postgres refuses a query for what it is, and not for how things stand at the moment. */
export function refusesQuery(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (typeof code === 'string' && STATES.test(code)) || TOO_LARGE.test(String(message));
}

/** What Postgres says against a statement, as a fault of what it was made from; everything else as it is. */
export function queryFault(error: unknown, { filters, hogql_query: query }: Written): unknown {
  const isWritten = query !== null || (Array.isArray(filters) && filters.length > 0);
  if (!isWritten || !refusesQuery(error)) return error;
  const { message } = error as Error;
  return query !== null
    ? new ModelError('hogql_query', `Invalid HogQL query: ${message}`)
    : new ModelError('filters', `One or more provided filters are invalid: ${message}`);
}

/** The same of planning, which computes what is constant: that must not take long. */
export function planFault(error: unknown, written: Written): unknown {
  if (!isStatementTimeout(error)) return queryFault(error, written);
  return queryFault({ code: '54000', message: 'it takes too long to be planned' }, written);
}
