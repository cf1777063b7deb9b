import pg from 'pg';

/** What db/listen.ts sends by itself, at any time, to hear whether its connection still hears. */
const OF_LISTENER = 'select pg_notify($1, $2)';

/** The texts of all queries, and their values, that this process sends while `work` runs, on whatever connection. */
export async function queriesOf<T>(
  work: () => Promise<T>,
): Promise<{ result: T; queries: string[]; values: unknown[][] }> {
  const queries: string[] = [];
  const values: unknown[][] = [];
  const original = pg.Client.prototype.query;
  pg.Client.prototype.query = function query(this: pg.Client, ...args: unknown[]) {
    const [first] = args as [string | { text?: string }];
    const text = typeof first === 'string' ? first : (first.text ?? '');
    if (text !== OF_LISTENER) {
      queries.push(text);
      values.push(Array.isArray(args[1]) ? args[1] : []);
    }
    return (original as (...all: unknown[]) => unknown).apply(this, args);
  } as typeof original;
  try {
    return { result: await work(), queries, values };
  } finally {
    pg.Client.prototype.query = original;
  }
}
