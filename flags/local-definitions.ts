import { parseExactJson } from '../values/exact-json.ts';
import type { ProjectFlags } from './cache/definitions.ts';
import { isRecord, own } from './engine/definition.ts';
import type { FlagSet } from './engine/flag-set.ts';

/** The keys of a flag and of all that it asks about, each after those that it asks about. Empty: it cannot be computed. */
function chainOf(set: FlagSet, id: number): string[] {
  const reached = new Set([id]);
  for (const one of reached) for (const next of set.byId.get(one)?.asks ?? []) reached.add(next);
  const chain = set.flags.filter((flag) => reached.has(flag.definition.id));
  return chain.length === reached.size ? chain.map((flag) => flag.definition.key) : [];
}

/** Names flags by their keys, as the SDKs do. */
function withKeys(filters: unknown, set: FlagSet): unknown {
  if (!isRecord(filters) || !Array.isArray(own(filters, 'groups'))) return filters;
  const rewrite = (property: unknown): unknown => {
    if (!isRecord(property) || property.type !== 'flag') return property;
    const id = Number(property.key);
    const asked = set.byId.get(id);
    return {
      ...property,
      key: asked?.definition.key ?? property.key,
      dependency_chain: asked ? chainOf(set, id) : [],
    };
  };
  const groups = (filters.groups as unknown[]).map((group) =>
    isRecord(group) && Array.isArray(group.properties)
      ? { ...group, properties: group.properties.map(rewrite) }
      : group,
  );
  return { ...filters, groups };
}

/** The tree of a cohort without what only people read. */
const treeOf = (text: string): unknown => {
  const filters = parseExactJson(text);
  return isRecord(filters) ? own(filters, 'properties') : undefined;
};

/** The ids of the cohorts that a tree names. */
function cohortsIn(tree: unknown): number[] {
  if (!isRecord(tree)) return [];
  if (Array.isArray(tree.values)) return tree.values.flatMap(cohortsIn);
  return tree.type === 'cohort' ? [Number(tree.value)] : [];
}

/** What an SDK needs to evaluate the flags of a project by itself, as JSON. */
export function localDefinitions({ set, rows, cohorts, groupTypes, projectId }: ProjectFlags): string {
  const local = rows.filter(
    (row) => !row.is_remote_configuration && !row.key.startsWith('survey-targeting-'),
  );
  const trees = new Map(
    cohorts.filter((one) => !one.is_static).map((one) => [one.id, treeOf(one.filters)] as const),
  );
  const wanted = new Set(local.flatMap((row) => set.byId.get(row.id)?.cohorts ?? []));
  for (const id of wanted) for (const next of cohortsIn(trees.get(id))) wanted.add(next);
  const flags = local.map((row) => ({
    id: row.id,
    team_id: projectId,
    name: row.name,
    key: row.key,
    filters: withKeys(parseExactJson(row.filters), set),
    deleted: false,
    active: row.active,
    version: row.version,
    ensure_experience_continuity: row.ensure_experience_continuity,
    evaluation_runtime: row.evaluation_runtime,
    bucketing_identifier: row.bucketing_identifier,
    evaluation_contexts: row.evaluation_contexts,
    tags: row.tags,
    has_experiment: false,
  }));
  return JSON.stringify({
    flags,
    group_type_mapping: Object.fromEntries(
      groupTypes.map((one) => [String(one.group_type_index), one.group_type]),
    ),
    cohorts: Object.fromEntries(
      [...wanted].flatMap((id) => (trees.get(id) === undefined ? [] : [[String(id), trees.get(id)]])),
    ),
  });
}
