import { type Pool, type Transaction, transaction } from './pool.ts';

const STATEMENT_TIMEOUT = '15s';

/** Runs queries whose cost the caller of the API decides: they change nothing, and Postgres ends those that take long. */
export async function reading<T>(pool: Pool, work: (client: Transaction) => Promise<T>): Promise<T> {
  return transaction(pool, async (client) => {
    await client.query(`set transaction read only; set local statement_timeout = '${STATEMENT_TIMEOUT}'`);
    return work(client);
  });
}

/** Whether a query was ended because it took too long. */
export function isStatementTimeout(error: unknown): boolean {
  return (error as { code?: string }).code === '57014';
}

/** A pattern for LIKE that matches what begins with this text. */
export const prefixPattern = (text: string) => `${text.replace(/[\\%_]/g, '\\$&')}%`;
