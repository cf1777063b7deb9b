import { listGroupTypes } from '../../db/group-types.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { isObject } from '../../values/json-object.ts';
import { openPayloads } from '../reads/payloads.ts';
import { type FlagRow, findFlagByKey, idsOfFlags, keysOfFlags } from '../rows/flags.ts';
import { changeFlag } from './change.ts';
import { createFlag } from './create.ts';
import type { FlagCommandDependencies, FlagInput } from './dependencies.ts';

export interface CopyDependencies extends FlagCommandDependencies {
  /** Makes sure that a project has cohorts like those of another one. Returns their ids by the ids of the others. */
  carryCohorts(
    actor: Actor,
    way: { from: number; to: number },
    ids: readonly number[],
  ): Promise<ReadonlyMap<number, number>>;
}

type Fields = Record<string, unknown>;

/** What the ids in the filters of a flag are in another project. */
export interface Translation {
  cohorts: ReadonlyMap<number, number>;
  flags: ReadonlyMap<number, number>;
  /** The indexes of types of groups. */
  groups: ReadonlyMap<number, number>;
}

const index = (value: unknown, { groups }: Translation): unknown =>
  typeof value === 'number' ? groups.get(value) : value;

function property(filter: unknown, to: Translation): unknown {
  if (!isObject(filter)) return filter;
  if (filter.type === 'cohort') return { ...filter, value: to.cohorts.get(Number(filter.value)) };
  if (filter.type === 'flag') return { ...filter, key: String(to.flags.get(Number(filter.key))) };
  if (filter.type === 'group') return { ...filter, group_type_index: index(filter.group_type_index, to) };
  return filter;
}

/** Writes filters for another project. */
export function translated(filters: Fields, to: Translation): Fields {
  const groups = (Array.isArray(filters.groups) ? filters.groups : []).map((group: unknown) =>
    isObject(group)
      ? {
          ...group,
          aggregation_group_type_index: index(group.aggregation_group_type_index, to),
          properties: Array.isArray(group.properties) ? group.properties.map((one) => property(one, to)) : [],
        }
      : group,
  );
  const about = index(filters.aggregation_group_type_index ?? null, to);
  return { ...filters, groups, aggregation_group_type_index: about };
}

/** The indexes of types of groups that filters use. */
function indexesIn(filters: Fields): number[] {
  const groups = (Array.isArray(filters.groups) ? filters.groups : []).filter(isObject);
  const used = [
    filters.aggregation_group_type_index,
    ...groups.map((group) => group.aggregation_group_type_index),
  ];
  return [...new Set(used.filter((one) => typeof one === 'number'))];
}

async function groupsOf({ pool }: CopyDependencies, from: number, to: number, used: readonly number[]) {
  if (used.length === 0) return new Map<number, number>();
  const [ours, theirs] = await Promise.all([listGroupTypes(pool, from), listGroupTypes(pool, to)]);
  return new Map(
    used.map((one) => {
      const type = ours.find((row) => row.group_type_index === one)?.group_type;
      const same = theirs.find((row) => row.group_type === type);
      if (type !== undefined && same) return [one, same.group_type_index] as const;
      const name = type === undefined ? `with the index ${one}` : `"${type}"`;
      throw refuse.invalid(
        'filters',
        `The flag is about groups of the type ${name}, which the project does not have.`,
      );
    }),
  );
}

async function flagsOf({ pool }: CopyDependencies, from: number, to: number, asks: readonly number[]) {
  const keys = await keysOfFlags(pool, from, asks);
  const there = await idsOfFlags(pool, to, [...keys.values()]);
  return new Map(
    asks.map((id) => {
      const key = keys.get(id);
      const found = key === undefined ? undefined : there.get(key);
      if (found !== undefined) return [id, found] as const;
      throw refuse.invalid(
        'filters',
        `The flag depends on the flag "${key ?? id}", which the project does not have. Copy that one first.`,
      );
    }),
  );
}

/** Finds what filters name in another project. Cohorts that are missing there are created. */
export async function translationOf(
  deps: CopyDependencies,
  actor: Actor,
  { from, to }: { from: number; to: number },
  asked: { filters: Fields; flags: readonly number[]; cohorts: readonly number[] },
): Promise<Translation> {
  const groups = await groupsOf(deps, from, to, indexesIn(asked.filters));
  const flags = await flagsOf(deps, from, to, asked.flags);
  const cohorts =
    asked.cohorts.length > 0
      ? await deps.carryCohorts(actor, { from, to }, asked.cohorts)
      : new Map<number, number>();
  return { groups, flags, cohorts };
}

/**
 * Copies a flag to another project. A flag of the same key there becomes what the copied one is. Cohorts, other flags and
 * types of groups are found there by their names; cohorts that are missing are created.
 */
export async function copyFlag(
  deps: CopyDependencies,
  actor: Actor,
  source: FlagRow,
  to: number,
  { isDisabled = false } = {},
): Promise<FlagRow> {
  const from = source.project_id;
  if (from === to) throw refuse.invalid('target_project_ids', 'The flag is in this project already.');
  const filters = parseExactJson(source.filters) as Fields;
  const asked = { filters, flags: source.asks, cohorts: source.asks_cohorts };
  const translation = await translationOf(deps, actor, { from, to }, asked);
  const payloads = source.has_encrypted_payloads ? { payloads: openPayloads(deps.keyring, source) } : {};
  const input: FlagInput = {
    key: source.key,
    name: source.name,
    filters: { ...translated(filters, translation), ...payloads },
    active: source.active && !isDisabled,
    archived: source.archived,
    ensure_experience_continuity: source.ensure_experience_continuity,
    is_remote_configuration: source.is_remote_configuration,
    has_encrypted_payloads: source.has_encrypted_payloads,
    evaluation_runtime: source.evaluation_runtime,
    bucketing_identifier: source.bucketing_identifier,
    evaluation_contexts: source.evaluation_contexts,
    tags: source.tags,
  };
  const existing = await findFlagByKey(deps.pool, to, source.key);
  if (!existing) return createFlag(deps, actor, to, input);
  const key = { projectId: to, flagId: existing.id };
  return changeFlag(deps, actor, key, { ...input, replacesFilters: true });
}
