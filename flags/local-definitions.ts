import { pacing } from '../db/loop-turns.ts';
import { parseExactJson } from '../values/exact-json.ts';
import { isObject } from '../values/json-object.ts';
import type { ProjectFlags } from './cache/definitions.ts';
import { own } from './engine/definition.ts';
import type { FlagSet } from './engine/flag-set.ts';
import { withoutCohorts } from './expand-cohorts.ts';
import type { FlagDefinitionRow } from './rows/definitions.ts';
import { SURVEY_FLAG_PREFIX } from './rows/flags.ts';

/** So many names of flags are listed in the chains of a body. A long chain of flags would list each of them in each one after it. */
const MOST_NAMED = 100_000;

/** What is known of the flags that others ask about. */
interface Chains {
  /** The keys of a flag and of all that it asks about, each after those that it asks about. Empty: SDKs ask the server. */
  of(id: number): readonly string[];
}

function chainsOf(set: FlagSet): Chains {
  const places = new Map(set.flags.map((flag, place) => [flag.definition.id, place]));
  const known = new Map<number, readonly string[]>();
  let named = 0;
  const chain = (id: number): readonly string[] => {
    const reached = new Set([id]);
    for (const one of reached) {
      if (!places.has(one) || named + reached.size > MOST_NAMED) return [];
      for (const next of set.byId.get(one)?.asks ?? []) reached.add(next);
    }
    named += reached.size;
    const inOrder = [...reached].sort((left, right) => (places.get(left) ?? 0) - (places.get(right) ?? 0));
    return inOrder.map((one) => set.byId.get(one)?.definition.key ?? '');
  };
  return {
    of(id) {
      const found = known.get(id) ?? chain(id);
      known.set(id, found);
      return found;
    },
  };
}

/** Names flags by their keys, as the SDKs do. */
function withKeys(filters: unknown, set: FlagSet, chains: Chains): unknown {
  if (!isObject(filters) || !Array.isArray(own(filters, 'groups'))) return filters;
  const rewrite = (property: unknown): unknown => {
    if (!isObject(property) || property.type !== 'flag') return property;
    const id = Number(property.key);
    const asked = set.byId.get(id);
    return {
      ...property,
      key: asked?.definition.key ?? property.key,
      dependency_chain: asked ? chains.of(id) : [],
    };
  };
  const groups = (filters.groups as unknown[]).map((group) =>
    isObject(group) && Array.isArray(group.properties)
      ? { ...group, properties: group.properties.map(rewrite) }
      : group,
  );
  return { ...filters, groups };
}

/** The tree of a cohort without what only people read. */
const treeOf = (text: string): unknown => {
  const filters = parseExactJson(text);
  return isObject(filters) ? own(filters, 'properties') : undefined;
};

/** The ids of the cohorts that a tree names. */
function cohortsIn(tree: unknown): number[] {
  if (!isObject(tree)) return [];
  if (Array.isArray(tree.values)) return tree.values.flatMap(cohortsIn);
  return tree.type === 'cohort' ? [Number(tree.value)] : [];
}

/** The texts of flags that ask about no others. They stay the same until the flag itself changes. */
const texts = new WeakMap<FlagDefinitionRow, string>();

function textOf(
  row: FlagDefinitionRow,
  { set, projectId }: ProjectFlags,
  chains: Chains,
  treeOfCohort: ((id: number) => unknown) | undefined,
): string {
  const known = texts.get(row);
  const compiled = set.byId.get(row.id);
  // What a cohort asks about changes without the flag.
  const expands = treeOfCohort !== undefined && (compiled?.cohorts.length ?? 0) > 0;
  if (known !== undefined && !expands) return known;
  const stored = parseExactJson(row.filters);
  const text = JSON.stringify({
    id: row.id,
    team_id: projectId,
    name: row.name,
    key: row.key,
    filters: withKeys(expands ? withoutCohorts(stored, treeOfCohort) : stored, set, chains),
    deleted: false,
    active: row.active,
    version: row.version,
    ensure_experience_continuity: row.ensure_experience_continuity,
    evaluation_runtime: row.evaluation_runtime,
    bucketing_identifier: row.bucketing_identifier,
    evaluation_contexts: row.evaluation_contexts,
    tags: row.tags,
    has_experiment: false,
  });
  if (!expands && (compiled?.asks.length ?? 0) === 0) texts.set(row, text);
  return text;
}

/**
 * What an SDK needs to evaluate the flags of a project by itself, as JSON. Only what has changed is written anew, and many
 * flags in several turns of the event loop. Without cohorts, conditions ask about properties instead where that can be written.
 */
export async function localDefinitions(project: ProjectFlags, { hasCohorts = true } = {}): Promise<string> {
  const { set, rows, cohorts, groupTypes } = project;
  const local = rows.filter((row) => !row.is_remote_configuration && !row.key.startsWith(SURVEY_FLAG_PREFIX));
  const chains = chainsOf(set);
  const known = new Map(cohorts.filter((one) => !one.is_static).map((one) => [one.id, one.filters]));
  const trees = new Map<number, unknown>();
  const treeFor = (id: number): unknown => {
    const text = known.get(id);
    if (!trees.has(id)) trees.set(id, text === undefined ? undefined : treeOf(text));
    return trees.get(id);
  };
  const flags: string[] = [];
  const rest = pacing();
  for (const row of local) {
    flags.push(textOf(row, project, chains, hasCohorts ? undefined : treeFor));
    const resting = rest();
    if (resting) await resting;
  }
  const wanted = new Set(hasCohorts ? local.flatMap((row) => set.byId.get(row.id)?.cohorts ?? []) : []);
  for (const id of wanted) {
    for (const next of cohortsIn(treeFor(id))) wanted.add(next);
    const resting = rest();
    if (resting) await resting;
  }
  const others = JSON.stringify({
    group_type_mapping: Object.fromEntries(
      groupTypes.map((one) => [String(one.group_type_index), one.group_type]),
    ),
    cohorts: Object.fromEntries(
      [...wanted].flatMap((id) => (trees.get(id) === undefined ? [] : [[String(id), trees.get(id)]])),
    ),
  });
  return `{"flags":[${flags.join(',')}],${others.slice(1)}`;
}
