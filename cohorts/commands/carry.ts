import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { isObject } from '../../values/json-object.ts';
import { type CohortRow, findCohort, findCohortByName } from '../rows/cohorts.ts';
import { type CohortCommandDependencies, createCohort } from './save.ts';

/** Cohorts may name cohorts. They are checked to be in no circle when they are stored. */
const MOST = 1_000;

const isCohort = (node: Record<string, unknown>) => node.type === 'cohort' || node.type === 'static-cohort';

/** The ids of the cohorts that filters name. */
function namedIn(node: unknown): number[] {
  if (!isObject(node)) return [];
  if (Array.isArray(node.values)) return node.values.flatMap(namedIn);
  return isCohort(node) ? [Number(node.value)] : [];
}

/** The same filters with the ids of another project. */
function renamed(node: unknown, ids: ReadonlyMap<number, number>): unknown {
  if (!isObject(node)) return node;
  if (Array.isArray(node.values)) return { ...node, values: node.values.map((one) => renamed(one, ids)) };
  return isCohort(node) ? { ...node, value: ids.get(Number(node.value)) } : node;
}

/** Puts cohorts behind those that they name. Those that are not among them count as there. Looks at each once. */
function innermostFirst<Cohort extends { asks: readonly number[] }>(
  order: readonly number[],
  rows: ReadonlyMap<number, Cohort>,
): Cohort[] {
  const missing = new Map<number, number>();
  const askedBy = new Map<number, number[]>();
  for (const id of order) {
    const asks = (rows.get(id) as Cohort).asks.filter((one) => rows.has(one));
    missing.set(id, asks.length);
    for (const one of asks) {
      const asking = askedBy.get(one);
      if (asking) asking.push(id);
      else askedBy.set(one, [id]);
    }
  }
  const ready = order.filter((id) => missing.get(id) === 0);
  for (const id of ready) {
    for (const asking of askedBy.get(id) ?? []) {
      const left = (missing.get(asking) as number) - 1;
      missing.set(asking, left);
      if (left === 0) ready.push(asking);
    }
  }
  if (ready.length < order.length) {
    throw refuse.invalid('filters', 'The cohorts of the flag name each other in a circle.');
  }
  return ready.map((id) => rows.get(id) as Cohort);
}

/**
 * Makes sure that another project has cohorts of the same names, and returns their ids by the ids of the given ones. Those
 * that it does not have are created, those that they name before them. Static ones cannot be carried along.
 */
export async function carryCohorts(
  deps: CohortCommandDependencies,
  actor: Actor,
  { from, to }: { from: number; to: number },
  wanted: readonly number[],
): Promise<Map<number, number>> {
  const { pool } = deps;
  const ids = new Map<number, number>();
  const rows = new Map<number, { row: CohortRow; asks: readonly number[] }>();
  const open = [...wanted];
  // First all of them are looked at, so that nothing is created when one of them cannot be carried along.
  const order: number[] = [];
  for (const id of open) {
    if (rows.has(id) || ids.has(id)) continue;
    if (order.length >= MOST) throw refuse.invalid('filters', `The flag needs more than ${MOST} cohorts.`);
    const row = await findCohort(pool, { projectId: from, cohortId: id });
    if (!row || row.deleted) throw refuse.invalid('filters', `Cohort with id ${id} does not exist`);
    const same = await findCohortByName(pool, to, row.name);
    if (same !== undefined) {
      ids.set(id, same);
      continue;
    }
    if (row.is_static) {
      throw refuse.invalid(
        'filters',
        `The cohort "${row.name}" lists persons of the other project, so it is not copied. Create a cohort with this name in the project first.`,
      );
    }
    const asks = [...new Set(namedIn((parseExactJson(row.filters) as { properties?: unknown }).properties))];
    rows.set(id, { row, asks });
    order.push(id);
    open.push(...asks);
  }
  for (const { row } of innermostFirst(order, rows)) {
    const filters = parseExactJson(row.filters) as { properties?: unknown };
    const created = await createCohort(deps, actor, to, {
      name: row.name,
      description: row.description,
      filters: { ...filters, properties: renamed(filters.properties, ids) },
    });
    ids.set(row.id, created.id);
  }
  return ids;
}
