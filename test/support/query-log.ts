import pg from 'pg';

/** The texts of all queries that this process sends while `work` runs, on whatever connection. */
export async function queriesOf<T>(work: () => Promise<T>): Promise<{ result: T; queries: string[] }> {
  const queries: string[] = [];
  const original = pg.Client.prototype.query;
  pg.Client.prototype.query = function query(this: pg.Client, ...args: unknown[]) {
    const [first] = args as [string | { text?: string }];
    queries.push(typeof first === 'string' ? first : (first.text ?? ''));
    return (original as (...all: unknown[]) => unknown).apply(this, args);
  } as typeof original;
  try {
    return { result: await work(), queries };
  } finally {
    pg.Client.prototype.query = original;
  }
}
