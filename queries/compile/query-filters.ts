// The filters that stand beside a whole SELECT, and what they are where the SELECT names them.
import { build, type Expr } from '../../hog/ast/index.ts';
import type { Parser } from '../../hog/parser/index.ts';
import type { QueryFilters, QueryJob } from '../rules/request.ts';
import { instant, instantOf, momentOf, propertyCondition } from './conditions.ts';

const FIELD = 'query__filters';

/** The tables that can be filtered, and their time that a range is about. */
const TIMES = { events: 'timestamp', sessions: '$start_timestamp', groups: 'created_at' } as const;
export type Filtered = keyof typeof TIMES;
/** If a SELECT joins several of them, the filters are about the first one of these. */
export const FILTERED = Object.keys(TIMES) as readonly Filtered[];

/** What stands for `{filters}`, `{filters.dateRange.from}` and `{filters.dateRange.to}`. */
export interface FilterFillings {
  conditions: ReadonlyMap<Filtered, Expr>;
  /** The bounds of the range. Null: it has none there. */
  range: Readonly<Record<'from' | 'to', Expr | null>>;
}

/** Builds the conditions of filters on some tables. The range has its beginning in it, and not its end. */
export async function filterFillings(
  { dateRange, properties, filterTestAccounts }: QueryFilters,
  tables: Iterable<Filtered>,
  { parser, job }: { parser: Pick<Parser, 'expression'>; job: QueryJob },
): Promise<FilterFillings> {
  const bound = (text: string | null | undefined, name: string): Expr | null => {
    const at = instantOf(text, momentOf(job), `${FIELD}__dateRange__${name}`);
    return at === null ? null : instant(at);
  };
  const range = { from: bound(dateRange?.date_from, 'date_from'), to: bound(dateRange?.date_to, 'date_to') };
  const documents = {
    properties,
    ...(filterTestAccounts && { filterTestAccounts: job.testAccounts }),
  };
  const conditions = new Map<Filtered, Expr>();
  for (const scope of tables) {
    const time = build.field(TIMES[scope]);
    const tests: Expr[] = [
      ...(range.from ? [build.compare('>=', time, range.from)] : []),
      ...(range.to ? [build.compare('<', time, range.to)] : []),
    ];
    for (const [name, document] of Object.entries(documents)) {
      tests.push(...(await propertyCondition(document, { parser, job, scope, field: `${FIELD}__${name}` })));
    }
    conditions.set(scope, build.and(tests));
  }
  return { conditions, range };
}
