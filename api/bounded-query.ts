import { isStatementTimeout } from '../db/reading.ts';
import { errors } from './errors.ts';

const RETRY_SECONDS = 5;

/** A query that takes too long is ended by Postgres; then it is for the caller to ask for less. */
export async function bounded<T>(work: Promise<T>, advice: string): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!isStatementTimeout(error)) throw error;
    throw errors.unavailable(`The query took too long. ${advice}`, RETRY_SECONDS);
  }
}
