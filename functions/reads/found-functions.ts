import type { Queryable } from '../../db/pool.ts';
import { type FunctionQuery, listFunctions, listNames, type ShownFunctionRow } from '../rows/functions.ts';
import { similarTo } from '../rules/similar.ts';

export interface FoundFunctions {
  count: number;
  rows: ShownFunctionRow[];
  /** How they match what was searched for. Undefined: nothing was. */
  match?: 'exact' | 'similar';
}

/** Lists functions. If none has the text that is searched for, those are listed whose name is similar. */
export async function findFunctions(queryable: Queryable, query: FunctionQuery): Promise<FoundFunctions> {
  const exact = await listFunctions(queryable, query);
  const { search, ...others } = query;
  if (search === undefined) return exact;
  if (exact.count > 0) return { ...exact, match: 'exact' };
  const similar = similarTo(search, await listNames(queryable, others));
  if (similar.length === 0) return exact;
  const ids = similar.map(({ id }) => id);
  return { ...(await listFunctions(queryable, { ...others, ids })), match: 'similar' };
}
