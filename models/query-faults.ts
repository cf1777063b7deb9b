import { isStatementTimeout } from '../db/reading.ts';
import { ModelError } from './model-query.ts';

/** What of an export can make a statement that Postgres does not run. */
export interface Written {
  filters: unknown;
  hogql_query: string | null;
}

/** Classes of SQLSTATEs: values, and limits of the program. */
const STATES = /^(22|54)/;
/** A value of a gigabyte has no state of its own. */
const TOO_LARGE = /^invalid memory alloc request size/;

/** What Postgres says against a statement, as a fault of what it was made from; everything else as it is. */
export function queryFault(error: unknown, { filters, hogql_query: query }: Written): unknown {
  const { code = '', message } = error as { code?: string; message: string };
  const isWritten = query !== null || (Array.isArray(filters) && filters.length > 0);
  if (!isWritten || !(STATES.test(code) || TOO_LARGE.test(message))) return error;
  return query !== null
    ? new ModelError('hogql_query', `Invalid HogQL query: ${message}`)
    : new ModelError('filters', `One or more provided filters are invalid: ${message}`);
}

/** The same of planning, which computes what is constant: that must not take long. */
export function planFault(error: unknown, written: Written): unknown {
  if (!isStatementTimeout(error)) return queryFault(error, written);
  return queryFault({ code: '54000', message: 'it takes too long to be planned' }, written);
}
