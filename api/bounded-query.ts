import { isStatementTimeout } from '../db/reading.ts';
import { errors } from './errors.ts';

const RETRY_SECONDS = 5;

/**
 * Waits for a query. If Postgres ends it because it takes too long, refuses the request and advises to ask for less.
 */
export async function bounded<T>(work: Promise<T>, advice: string): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!isStatementTimeout(error)) throw error;
    throw errors.unavailable(`The query took too long. ${advice}`, RETRY_SECONDS);
  }
}
