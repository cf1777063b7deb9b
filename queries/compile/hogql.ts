import { storedRanges } from '../../db/event-spans.ts';
import { build, type SelectNode } from '../../hog/ast/index.ts';
import { SourceError } from '../../hog/errors.ts';
import type { Parser } from '../../hog/parser/index.ts';
import { createSchema, printStatement, QUERY_LIMITS } from '../../hog/sql/index.ts';
import { selectText } from '../../hog/text/index.ts';
import type { HogQLQuery, QueryJob } from '../rules/request.ts';
import { plainColumns, type Selected } from './columns.ts';
import { eventConditions } from './conditions.ts';
import { of } from './faults.ts';
import { filled } from './placeholders.ts';

export const DEFAULT_ROWS = 100;
export const MOST_ROWS = 50_000;
const SCHEMA = createSchema('current');

const hasLimit = (node: SelectNode): boolean => node.kind !== 'valuesQuery' && node.limit !== null;

/** Compiles a whole SELECT. In an answer, one without a LIMIT gets one, and the answer tells whether there is more. */
export async function compileHogQL(parser: Parser, job: QueryJob, request: HogQLQuery): Promise<Selected> {
  const { query: source, values, filters } = request;
  const conditions = await eventConditions(filters ?? {}, { parser, job, field: 'query__filters' });
  return of('query', async () => {
    const read = await parser.select(source);
    const tree = placed(source, () => filled(read, { values: values ?? {}, filters: conditions }));
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
