import { build, type Expr } from '../../hog/ast/index.ts';
import type { Parser } from '../../hog/parser/index.ts';
import {
  type ExpressionOptions,
  filterExpression,
  hogqlSources,
  readFilters,
} from '../../properties/index.ts';
import { instantText, type Moment, parseDate, parseRelativeDate } from '../../values/dates.ts';
import type { QueryJob } from '../rules/request.ts';
import { QueryError } from '../rules/request.ts';
import { of } from './faults.ts';

export const momentOf = ({ now, timezone }: QueryJob): Moment => ({ now, timezone });

/** Reads a time: a date, `-7d` or `7d`, or `all` for no bound. */
export function instantOf(text: string | null | undefined, moment: Moment, field: string): number | null {
  if (text === null || text === undefined || text === '' || text === 'all') return null;
  const at = parseDate(text, moment.timezone) ?? parseRelativeDate(text, moment);
  if (at === null) {
    throw new QueryError(
      field,
      `'${text.slice(0, 60)}' is no time: write a date, such as 2026-01-31, or -7d.`,
    );
  }
  return at;
}

export const instant = (at: number | string): Expr =>
  build.call('toDateTime64', build.constant(typeof at === 'number' ? instantText(at) : at), build.integer(6));

/** Builds the condition of a document of filters. */
export function propertyCondition(
  document: unknown,
  {
    parser,
    job,
    scope,
    field,
  }: { parser: Pick<Parser, 'expression'>; job: QueryJob; scope: ExpressionOptions['scope']; field: string },
): Promise<Expr[]> {
  return of(field, async () => {
    if (document === null || document === undefined) return [];
    const tree = readFilters(document);
    const hogql = new Map<string, Expr>();
    for (const source of hogqlSources(tree)) hogql.set(source, await parser.expression(source));
    return [filterExpression(tree, { moment: momentOf(job), scope, hogql })];
  });
}

/** Builds the conditions of the filters of a list: those that its user can change, and those that stay. */
export async function givenConditions(
  { properties, fixedProperties }: { properties?: unknown; fixedProperties?: unknown },
  around: { parser: Pick<Parser, 'expression'>; job: QueryJob; scope: ExpressionOptions['scope'] },
): Promise<Expr[]> {
  return [
    ...(await propertyCondition(properties, { ...around, field: 'query__properties' })),
    ...(await propertyCondition(fixedProperties, { ...around, field: 'query__fixedProperties' })),
  ];
}
