import { isStatementTimeout } from '../db/reading.ts';
import { ModelError } from './model-query.ts';

/** The settings of an export that can make a statement that Postgres refuses. */
export interface Written {
  filters: unknown;
  hogql_query: string | null;
}

/**
 * SQLSTATEs of errors that come from the filters and columns of an export, so that trying again does not help. Class 22
 * is about the data, 42 and 0A are about the statement, and 54 is about something too large or too complex. 42501 says
 * that the reader lacks a right, which is not the fault of a user.
 */
const STATES = /^(22|42(?!501)|54|0A).{3}$/;
/** A value of a gigabyte or more has no SQLSTATE of its own. */
const TOO_LARGE = /^invalid memory alloc request size/;

/** Returns whether Postgres refuses the query itself, so that trying again does not help. */
export function refusesQuery(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (typeof code === 'string' && STATES.test(code)) || TOO_LARGE.test(String(message));
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
