import { transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { listLinks } from '../rows/flags.ts';
import { groupsForFlags } from '../rows/persons.ts';
import { checkAsks, checkCohorts } from './check.ts';
import { prepareFlag } from './prepare.ts';
import { definitionOf, LONGEST, personPages, prepareJob, search, type TryDependencies } from './try-flag.ts';

export interface RadiusQuery {
  projectId: number;
  /** A condition set. Its rollout does not count. */
  condition: Record<string, unknown>;
  /** Null: it is about persons. */
  groupTypeIndex: number | null;
}

/** How many persons or groups fulfil a condition set, of how many. */
export interface Radius {
  affected: number;
  total: number;
  isComplete: boolean;
}

const MOST_BYTES = 64 * 1024;
/** A key that no flag needs to have: the condition is one for everybody in the rollout, so nothing is hashed. */
const DRAFT = { key: 'draft' };

/** The filters of a condition about groups, for whom groups are evaluated as if they were persons. */
function asOfPersons(filters: string): { text: string; names: string[] } {
  const names = new Set<string>();
  const { groups } = parseExactJson(filters) as { groups: { properties: Record<string, unknown>[] }[] };
  const properties = (groups[0]?.properties ?? []).map(({ group_type_index: _, ...one }) => {
    names.add(String(one.key));
    return { ...one, type: 'person' };
  });
  const text = JSON.stringify({ groups: [{ properties, rollout_percentage: 100 }] });
  return { text, names: [...names] };
}

/** Counts whom a condition set would be about, whatever its rollout. Nothing is stored. */
export async function radiusOf(
  deps: TryDependencies,
  { projectId, condition, groupTypeIndex }: RadiusQuery,
  signal?: AbortSignal,
  { longest = LONGEST, now = Date.now() } = {},
): Promise<Radius> {
  const deadline = performance.now() + longest;
  const groups = [
    {
      properties: condition.properties ?? [],
      rollout_percentage: 100,
      aggregation_group_type_index: groupTypeIndex,
    },
  ];
  const { fields, asks, cohorts } = prepareFlag(deps, undefined, { ...DRAFT, filters: { groups } });
  await transaction(deps.pool, async (client) => {
    await checkCohorts(deps, client, projectId, cohorts);
    checkAsks({ id: 0, key: fields.key, active: true, asks }, await listLinks(client, projectId));
  });
  const project = await deps.definitions.fresh(projectId);
  if (!project) throw refuse.absent();
  const ofGroups = groupTypeIndex === null ? null : asOfPersons(fields.filters);
  const draft = { ...fields, filters: ofGroups?.text ?? fields.filters };
  const { job, needs } = prepareJob(project, { ...definitionOf(draft, 0, 1), overrides: [] }, null);
  const pages: Parameters<typeof search>[3] =
    groupTypeIndex === null
      ? personPages(projectId, needs)
      : (client, after, limit) =>
          groupsForFlags(client, {
            ...{ projectId, groupTypeIndex, names: ofGroups?.names ?? [] },
            ...{ mostBytes: MOST_BYTES, after, limit },
          });
  const bounds = { deadline, mostDistinctIds: Number.POSITIVE_INFINITY, sample: 0, now };
  const found = await search(deps, projectId, job, pages, bounds, signal);
  const matching = found.groups.find(({ proposed }) => proposed.value === true);
  const { persons: total, is_complete: isComplete } = found.searched;
  return { affected: matching?.persons ?? 0, total, isComplete };
}
