import { storedRanges } from '../../db/event-spans.ts';
import { build, type SelectNode } from '../../hog/ast/index.ts';
import { SourceError } from '../../hog/errors.ts';
import type { Parser } from '../../hog/parser/index.ts';
import { createSchema, printStatement, QUERY_LIMITS } from '../../hog/sql/index.ts';
import { selectText } from '../../hog/text/index.ts';
import { type HogQLQuery, QueryError, type QueryJob } from '../rules/request.ts';
import { plainColumns, type Selected } from './columns.ts';
import { of } from './faults.ts';
import { filled, filteredTables } from './placeholders.ts';
import { filterFillings } from './query-filters.ts';

export const DEFAULT_ROWS = 100;
export const MOST_ROWS = 50_000;
const SCHEMA = createSchema('current');

const hasLimit = (node: SelectNode): boolean => node.kind !== 'valuesQuery' && node.limit !== null;

/** Compiles a whole SELECT. In an answer, one without a LIMIT gets one, and the answer tells whether there is more. */
export async function compileHogQL(parser: Parser, job: QueryJob, request: HogQLQuery): Promise<Selected> {
  const { query: source, filters } = request;
  const values = request.values ?? {};
  if (filters && Object.hasOwn(values, 'filters')) {
    throw new QueryError('query__values', '{filters} has a value, and there are filters: give one of both.');
  }
  return of('query', async () => {
    const read = await parser.select(source);
    const tables = placed(source, () => filteredTables(read, values));
    // What is wrong with filters is told also where the text names none.
    const filtered = tables.size > 0 ? tables : (['events'] as const);
    const fillings = { values, filters: await filterFillings(filters ?? {}, filtered, { parser, job }) };
    const tree = placed(source, () => filled(read, fillings));
    const isPaged = job.form === 'answer' && !hasLimit(tree);
    const page = isPaged ? { limit: DEFAULT_ROWS, offset: 0 } : null;
    const statement = print(tree, job, { source, rows: isPaged ? DEFAULT_ROWS + 1 : MOST_ROWS });
    return {
      statement,
      columns: plainColumns(statement),
      page,
      place: null,
      hogql: selectText(isPaged ? withLimit(tree, DEFAULT_ROWS) : tree),
    };
  });
}

/** Does a part of the work. Its errors get their place in the text. */
function placed<T>(source: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof SourceError ? error.in(source) : error;
  }
}

export const withLimit = (node: SelectNode, rows: number): SelectNode =>
  node.kind === 'valuesQuery' ? node : { ...node, limit: build.integer(rows) };

/** Prints a query, with a LIMIT if it has none. With `rows: null`, or for a file, it needs none. */
export const print = (
  tree: SelectNode,
  { form, projectId, timezone, now, weeks }: QueryJob,
  { source, rows }: { source?: string; rows: number | null },
) =>
  printStatement(tree, {
    ...{ schema: SCHEMA, projectId, timezone, now },
    storedRanges: (bounds) => storedRanges(weeks, bounds),
    ...(source !== undefined && { source }),
    limits: {
      ...QUERY_LIMITS,
      ...(form !== 'answer' || rows === null
        ? { defaultRows: null, maxRows: null }
        : { defaultRows: rows, maxRows: Math.max(MOST_ROWS, rows) }),
    },
  });
