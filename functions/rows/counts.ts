import type { Queryable } from '../../db/pool.ts';

export type MetricKind = 'success' | 'failure' | 'other';

/** A number to be added to a metric of a function. */
export interface Count {
  projectId: number;
  functionId: string;
  kind: MetricKind;
  name: string;
  count: number;
}

/** Adds up the numbers of each metric. */
export class Counts {
  readonly #counts = new Map<string, Count>();

  add(projectId: number, functionId: string, kind: MetricKind, name: string, count = 1): void {
    const key = `${projectId}:${functionId}:${kind}:${name}`;
    const known = this.#counts.get(key);
    if (known) known.count += count;
    else this.#counts.set(key, { projectId, functionId, kind, name, count });
  }

  get size(): number {
    return this.#counts.size;
  }

  get all(): Count[] {
    return [...this.#counts.values()];
  }
}

/** SQL that adds numbers to metrics, as `addCounts` does. `source`: what has these numbers, with the columns of a `Count`. */
export const addingCounts = (source: string): string =>
  `insert into function_metrics as m (project_id, function_id, hour, kind, name, count)
     select project_id, function_id, date_trunc('hour', clock_timestamp(), 'UTC'), kind, name, count
     from ${source} as c (project_id, function_id, kind, name, count)
     where exists (select from functions f where f.project_id = c.project_id and f.id = c.function_id)
     order by project_id, function_id, kind, name
     on conflict (project_id, function_id, hour, kind, name) do update set count = m.count + excluded.count`;

/** Numbers in parameters of a statement, from `first` on; see `countValues`. */
export const countsGiven = (first: number): string =>
  `unnest($${first}::int[], $${first + 1}::uuid[], $${first + 2}::text[], $${first + 3}::text[], $${first + 4}::bigint[])`;

export const countValues = (counts: readonly Count[]): unknown[] => [
  counts.map((one) => one.projectId),
  counts.map((one) => one.functionId),
  counts.map((one) => one.kind),
  counts.map((one) => one.name),
  counts.map((one) => one.count),
];

/** Adds numbers to the metrics of this hour, in the order of their keys, of functions that still exist. */
export async function addCounts(queryable: Queryable, counts: readonly Count[]): Promise<void> {
  if (counts.length === 0) return;
  await queryable.query({
    name: 'add-function-counts',
    text: addingCounts(countsGiven(1)),
    values: countValues(counts),
  });
}
