import type { Queryable } from '../../db/pool.ts';

export interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  Filter?: string;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  Plans?: PlanNode[];
}

/** All nodes of the plan of a statement; with `analyze`, as it was executed. */
export async function planOf(
  queryable: Queryable,
  text: string,
  values: unknown[],
  { analyze = false } = {},
): Promise<PlanNode[]> {
  const { rows } = await queryable.query(`explain (format json, analyze ${analyze}) ${text}`, values);
  const nodes: PlanNode[] = [];
  const visit = (node: PlanNode) => {
    nodes.push(node);
    node.Plans?.forEach(visit);
  };
  visit(rows[0]['QUERY PLAN'][0].Plan);
  return nodes;
}
