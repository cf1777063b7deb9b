import pg from 'pg';

/** What db/listen.ts sends by itself, at any time, to hear whether its connection still hears. */
const OF_LISTENER = 'select pg_notify($1, $2)';

/**
 * The texts of all queries that this process sends while `work` runs, on whatever connection, their values, and how many rows
 * each has brought, where somebody waits for a promise of them.
 */
export async function queriesOf<T>(
  work: () => Promise<T>,
): Promise<{ result: T; queries: string[]; values: unknown[][]; rows: (number | undefined)[] }> {
  const queries: string[] = [];
  const values: unknown[][] = [];
  const rows: (number | undefined)[] = [];
  const original = pg.Client.prototype.query;
  pg.Client.prototype.query = function query(this: pg.Client, ...args: unknown[]) {
    const [first] = args as [string | { text?: string; values?: unknown[] }];
    const { text = '', values: own = [] } = typeof first === 'string' ? { text: first } : first;
    const answer = (original as (...all: unknown[]) => unknown).apply(this, args);
    if (text === OF_LISTENER) return answer;
    const at = queries.push(text) - 1;
    values.push(Array.isArray(args[1]) ? args[1] : own);
    rows.push(undefined);
    (answer as Promise<pg.QueryResult> | undefined)?.then(
      (result) => {
        rows[at] = result.rows?.length;
      },
      () => undefined,
    );
    return answer;
  } as typeof original;
  try {
    return { result: await work(), queries, values, rows };
  } finally {
    pg.Client.prototype.query = original;
  }
}
