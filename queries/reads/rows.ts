import { RowTooLongError } from '../../db/copy-out.ts';
import type { Pool, Transaction } from '../../db/pool.ts';
import { inTurn, isStatementTimeout, readOnly, refusesQuery } from '../../db/reading.ts';
import { ofProject } from '../../db/roles/project-setting.ts';
import type { Asker } from '../../db/turns.ts';
import { type CompiledQuery, MOST_BYTES, MOST_SECONDS, QueryError } from '../rules/request.ts';

/** How long Postgres may work for a query, and what to do about one that takes longer. */
export interface QueryTime {
  seconds: number;
  advice: string;
}

/** For whoever waits for the answer. */
export const AT_ONCE: QueryTime = {
  seconds: MOST_SECONDS.atOnce,
  advice: 'Choose a shorter range of time, or add conditions.',
};
/** How many rows come from Postgres at once. */
const ROWS_AT_ONCE = 500;
/** What an answer may take of the memory of this process: its letters, and so many bytes more for each value. */
const MOST_MEMORY = 64 * 1024 * 1024;
const VALUE_BYTES = 32;

export interface QueryRows {
  /** The values of each row as JSON texts. Null: the value is missing. */
  rows: (string | null)[][];
  /** The milliseconds that the query waited for its turn, and those of Postgres. */
  waited: number;
  ran: number;
}

type Runnable = Pick<CompiledQuery, 'text' | 'values' | 'width'>;

/**
 * Runs a compiled query as the role that sees the rows of one project only. Throws a QueryError if the query is at fault, or
 * its result is too large.
 */
export async function readRows(
  reader: Pool,
  asker: Asker,
  query: Runnable,
  time: QueryTime = AT_ONCE,
): Promise<QueryRows> {
  const asked = performance.now();
  let began = asked;
  const rows = await inTurn(reader, asker, () => {
    began = performance.now();
    return inTransaction(reader, asker, time, (client) => fetchAll(client, query, time));
  }).catch((error: unknown) => {
    throw faultOf(error, time);
  });
  return { rows, waited: began - asked, ran: performance.now() - began };
}

/** Says how Postgres would run a query, without its guesses of costs, which tell about the rows of others. */
export async function explainRows(
  reader: Pool,
  asker: Asker,
  query: Runnable,
  time: QueryTime = AT_ONCE,
): Promise<string[]> {
  const plan = inTurn(reader, asker, () =>
    inTransaction(reader, asker, time, async (client) => {
      const { rows } = await client.query(`explain (costs off) ${query.text}`, [...query.values]);
      return rows.map((row) => row['QUERY PLAN'] as string);
    }),
  );
  return plan.catch((error: unknown) => {
    throw faultOf(error, time);
  });
}

const inTransaction = <T>(
  reader: Pool,
  { projectId, signal }: Asker,
  { seconds }: QueryTime,
  work: (client: Transaction) => Promise<T>,
): Promise<T> =>
  readOnly(
    reader,
    {
      timeoutMs: seconds * 1000,
      // All rows are fetched, so the planner need not hurry with the first ones.
      settings: { cursor_tuple_fraction: '1', ...ofProject(projectId) },
      signal,
    },
    work,
  );

/** Fetches rows by and by, and ends when they are too large together. */
async function fetchAll(
  client: Transaction,
  { text, values, width }: Runnable,
  time: QueryTime,
): Promise<(string | null)[][]> {
  const found: (string | null)[][] = [];
  // Each fetch is a statement with a time limit of its own. All together have no more time than one.
  const end = performance.now() + time.seconds * 1000;
  let memory = 0;
  await client.query(`declare answer no scroll cursor for ${text}`, [...values]);
  for (;;) {
    const { rows } = await client.query({ text: `fetch ${ROWS_AT_ONCE} from answer`, rowMode: 'array' });
    for (const row of rows as (string | null)[][]) {
      if (Number(row[width]) > MOST_BYTES) throw tooLarge();
      memory += row.reduce((sum, value) => sum + VALUE_BYTES + (value?.length ?? 0), 0);
      if (memory > MOST_MEMORY) throw tooMany();
      found.push(row.slice(0, width));
    }
    if (rows.length < ROWS_AT_ONCE) return found;
    if (performance.now() > end) throw tooSlow(time);
  }
}

const tooLarge = () =>
  new QueryError(
    'query',
    `The result is larger than ${MOST_BYTES / 1024 / 1024} MiB. Select fewer columns or rows, or export them.`,
  );
const tooMany = () =>
  new QueryError(
    'query',
    'The result has too many values to be held in memory. Select fewer columns or rows, or ask for a file.',
  );
export const tooSlow = ({ seconds, advice }: QueryTime) =>
  new QueryError(
    'query',
    `The query takes longer than ${seconds} ${seconds === 1 ? 'second' : 'seconds'}. ${advice}`,
  );
const tooLong = ({ bytes, longest }: RowTooLongError) =>
  new QueryError('query', `A row has ${bytes} bytes, and may have ${longest}. Select fewer columns.`);

/** Messages of functions of ours, for whoever wrote the query. */
const OURS = '54000';
/** What Postgres says of data, in words of ours. Its own words may name its own things. */
const REASONS: Readonly<Record<string, string>> = {
  '22003': 'A number is too large.',
  '22008': 'A time is out of range.',
  '22007': 'A text is no time.',
  '22P02': 'A value has the wrong form for its type.',
  '22012': 'A number is divided by zero.',
  '2201B': 'A regular expression is not valid.',
  '42883': 'A function or an operator does not take values of these types.',
  '42804': 'Values of different types stand where they must have one type.',
  '53400': 'The query needs too much room for its intermediate results.',
  '54001': 'The query is nested too deep.',
  '54011': 'The query selects too many columns.',
  // The only internal error that is the fault of a query.
  XX000: 'A value of the query is too large.',
};
/** What an operator sets a limit for. */
const OVER_LIMIT = '53400';

/** Turns an error that the query causes into a QueryError. Returns other errors as they are. */
export function faultOf(error: unknown, time = AT_ONCE): unknown {
  const { code, message } = error as { code?: string; message?: string };
  if (isStatementTimeout(error)) return tooSlow(time);
  if (error instanceof RowTooLongError) return tooLong(error);
  if (!refusesQuery(error) && code !== OVER_LIMIT) return error;
  if (code === OURS) return new QueryError('query', message ?? '');
  return new QueryError('query', REASONS[code ?? ''] ?? `The query does not fit the data (${code}).`);
}
