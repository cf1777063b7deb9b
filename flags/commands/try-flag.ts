import { type Transaction, transaction } from '../../db/pool.ts';
import { withInitial } from '../../properties/index.ts';
import { refuse } from '../../refusals.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import type { Definitions, ProjectFlags } from '../cache/definitions.ts';
import { type CompiledFlag, compileFlag } from '../engine/compile.ts';
import { needsOf } from '../engine/flag-set.ts';
import { type FlagFields, findFlag, listLinks } from '../rows/flags.ts';
import { type PersonForFlags, personsForFlags } from '../rows/persons.ts';
import type { TrialExample, TrialFlag, TrialGroup, TrialJob } from '../trial/trial.ts';
import { TrialBusyError, TrialLimitError, type Trials } from '../trial/trials.ts';
import { checkAsks, checkCohorts } from './check.ts';
import type { FlagCommandDependencies, FlagInput } from './dependencies.ts';
import { prepareFlag } from './prepare.ts';

export interface TryDependencies extends FlagCommandDependencies {
  definitions: Definitions;
  trials: Trials;
  /** Runs queries that only read, in a turn of the project. */
  read<T>(work: (client: Transaction) => Promise<T>): Promise<T>;
}

export interface TryQuery {
  projectId: number;
  /** Null: the flag is new. */
  flagId: number | null;
  draft: FlagInput;
  mostDistinctIds: number;
  sample: number;
}

/** What a draft would be for stored persons. */
export interface FlagTrial {
  searched: { persons: number; distinct_ids: number; too_large: number; is_complete: boolean };
  /** How many distinct ids would get each value. */
  proposed: ValueCount[];
  /** How many get it now. Null: the flag is new. */
  running: ValueCount[] | null;
  changed: number;
  changes: { from: boolean | string; to: boolean | string; count: number }[];
  sample: TrialExample[];
  rests_on: string[];
}

export interface ValueCount {
  value: boolean | string;
  failed: boolean;
  count: number;
}

const PAGE = 500;
const MOST_BYTES = 64 * 1024;
const MOST_IDS_OF_PERSON = 1_000;
export const LONGEST = 15_000;
const RETRY_SECONDS = 5;

const BASIS = [
  'Each distinct id of a stored person counts by itself, because it is hashed; of a person, the first 1,000 count.',
  'Properties are those that are stored now. What requests say of a person, and the place of their address, does not count.',
];

export const definitionOf = (
  fields: FlagFields,
  id: number,
  version: number,
): Omit<TrialFlag, 'overrides'> => ({
  id,
  key: fields.key,
  version,
  filters: fields.filters,
  ensureExperienceContinuity: fields.ensure_experience_continuity,
  runtime: fields.evaluation_runtime,
  bucketing: fields.bucketing_identifier,
  contexts: fields.evaluation_contexts,
  isRemoteConfiguration: fields.is_remote_configuration,
  hasEncryptedPayloads: fields.has_encrypted_payloads,
  isActive: fields.active && !fields.deleted,
});

const toCompiled = ({ filters, overrides, ...flag }: TrialFlag): CompiledFlag =>
  compileFlag({ ...flag, filters: parseExactJson(filters), overrides: new Map(overrides) });

/** All flags that some flags ask about, directly or through others. */
function askedBy(flags: readonly CompiledFlag[], { set }: ProjectFlags, own: number): CompiledFlag[] {
  const reached = new Set(flags.flatMap((flag) => flag.asks));
  for (const id of reached) for (const next of set.byId.get(id)?.asks ?? []) reached.add(next);
  reached.delete(own);
  return [...reached].flatMap((id) => set.byId.get(id) ?? []);
}

/** What the trial of two versions needs of the project. */
export function prepareJob(project: ProjectFlags, proposed: TrialFlag, running: TrialFlag | null) {
  const own = [proposed, ...(running ? [running] : [])].map(toCompiled);
  const asked = askedBy(own, project, proposed.id);
  const rows = new Map(project.rows.map((row) => [row.id, row]));
  const byId = new Map(asked.map((flag) => [flag.definition.id, flag]));
  // An inactive flag has no needs: it is off for everybody.
  const needs = needsOf([...own, ...asked], byId, project.set.cohorts);
  const job: Omit<TrialJob, 'persons' | 'sample' | 'now'> = {
    proposed,
    running,
    asked: asked.map(({ definition: { filters: _, overrides, ...definition } }) => ({
      ...definition,
      filters: rows.get(definition.id)?.filters ?? '{}',
      overrides: [...overrides],
    })),
    cohorts: project.cohorts.map((one) => ({ id: one.id, isStatic: one.is_static, filters: one.filters })),
    timezone: project.set.timezone,
  };
  return { job, needs };
}

/** Tells what else the answer rests on. */
function basisOf(proposed: TrialFlag, isComplete: boolean): string[] {
  const basis = [...BASIS];
  const filters = proposed.filters;
  if (!isComplete) {
    basis.push('Not all persons were looked at. Those that were are a sample: their ids follow from hashes.');
  }
  if (proposed.bucketing === 'device_id') {
    basis.push('The flag is bucketed by device, and persons have no device: nobody is in a partial rollout.');
  }
  if (/"(?:aggregation_group_type_index|group_type_index)":\d/.test(filters)) {
    basis.push(
      'Conditions about groups are skipped, because only requests say which groups somebody belongs to.',
    );
  }
  return basis;
}

export interface SearchBounds {
  /** When the search ends with what it has, by the clock of the process. */
  deadline: number;
  mostDistinctIds: number;
  sample: number;
  now: number;
}

/** Reads what comes after an id, in the order of ids. */
type Pages = (client: Transaction, after: string | null, limit: number) => Promise<PersonForFlags[]>;

/** Pages of the persons of a project, with what is needed of them. */
export const personPages =
  (projectId: number, needs: ReturnType<typeof needsOf>): Pages =>
  (client, after, limit) =>
    personsForFlags(client, {
      ...{ projectId, names: withInitial(needs.properties) },
      ...{ staticCohorts: needs.staticCohorts, flagKeys: needs.continuous },
      ...{ mostBytes: MOST_BYTES, mostDistinctIds: MOST_IDS_OF_PERSON, after, limit },
    });

/** Evaluates versions of a flag for all pages, in threads. */
export async function search(
  deps: Pick<TryDependencies, 'read' | 'trials'>,
  projectId: number,
  job: Omit<TrialJob, 'persons' | 'sample' | 'now'>,
  pages: Pages,
  { deadline, mostDistinctIds, sample, now }: SearchBounds,
  signal?: AbortSignal,
): Promise<{ groups: TrialGroup[]; searched: FlagTrial['searched'] }> {
  const groups = new Map<string, TrialGroup>();
  const searched = { persons: 0, distinct_ids: 0, too_large: 0, is_complete: false };
  let after: string | null = null;
  try {
    while (performance.now() < deadline && searched.distinct_ids < mostDistinctIds) {
      signal?.throwIfAborted();
      const from: string | null = after;
      const page: PersonForFlags[] = await deps.read((client) => pages(client, from, PAGE));
      const persons = page.flatMap(({ id, properties, ...one }) =>
        properties === null
          ? []
          : [
              {
                ...{ id, properties, distinctIds: one.distinct_ids },
                ...{ staticCohorts: one.static_cohorts, hashKeys: one.hash_keys },
              },
            ],
      );
      merge(groups, await deps.trials.run(projectId, { ...job, persons, sample, now }, signal), sample);
      searched.persons += page.length;
      searched.too_large += page.length - persons.length;
      searched.distinct_ids += persons.reduce((sum, one) => sum + one.distinctIds.length, 0);
      after = page.at(-1)?.id ?? after;
      searched.is_complete = page.length < PAGE;
      if (searched.is_complete) break;
    }
  } catch (error) {
    if (error instanceof TrialBusyError) throw refuse.unavailable(error.message, RETRY_SECONDS);
    if (error instanceof TrialLimitError) throw refuse.invalid('filters', error.message);
    throw error;
  }
  return { groups: [...groups.values()], searched };
}

/** Adds up the values that one of the versions has. */
function countsOf(groups: readonly TrialGroup[], which: 'proposed' | 'running'): ValueCount[] {
  const counts = new Map<string, ValueCount>();
  for (const group of groups) {
    const value = group[which];
    if (!value) continue;
    const name = JSON.stringify(value);
    const known = counts.get(name) ?? { ...value, count: 0 };
    counts.set(name, { ...known, count: known.count + group.count });
  }
  return [...counts.values()].sort((left, right) => right.count - left.count);
}

const isChange = ({ proposed, running }: TrialGroup) =>
  running !== null && (proposed.value !== running.value || proposed.failed !== running.failed);

/** Chooses examples, of each kind in turn, and those that change first. */
function chosen(groups: readonly TrialGroup[], sample: number): TrialExample[] {
  const inTurn = (some: readonly TrialGroup[]) => {
    const longest = Math.max(0, ...some.map((group) => group.examples.length));
    return Array.from({ length: longest }, (_, n) => some.flatMap((group) => group.examples[n] ?? [])).flat();
  };
  const changed = groups.filter(isChange);
  const same = groups.filter((group) => !isChange(group));
  return [...inTurn(changed), ...inTurn(same)].slice(0, sample);
}

function merge(into: Map<string, TrialGroup>, groups: readonly TrialGroup[], sample: number): void {
  for (const group of groups) {
    const name = JSON.stringify([group.running, group.proposed]);
    const known = into.get(name);
    if (!known) into.set(name, group);
    else {
      known.count += group.count;
      known.persons += group.persons;
      known.examples.push(...group.examples.slice(0, sample - known.examples.length));
    }
  }
}

/** Tries a draft of a flag with stored persons: what each would get, and for whom that would change. Nothing is stored. */
export async function tryFlag(
  deps: TryDependencies,
  { projectId, flagId, draft, mostDistinctIds, sample }: TryQuery,
  signal?: AbortSignal,
  { longest = LONGEST, now = Date.now() } = {},
): Promise<FlagTrial> {
  const deadline = performance.now() + longest;
  const before = flagId === null ? undefined : await findFlag(deps.pool, { projectId, flagId });
  if (flagId !== null && (!before || before.deleted)) throw refuse.absent();
  const { fields, asks, cohorts } = prepareFlag(deps, before, draft);
  await transaction(deps.pool, async (client) => {
    await checkCohorts(deps, client, projectId, cohorts);
    const own = { id: flagId ?? 0, key: fields.key, active: fields.active, asks };
    checkAsks(own, await listLinks(client, projectId));
  });
  const project = await deps.definitions.fresh(projectId);
  if (!project) throw refuse.absent();
  const overrides = [...((flagId !== null && project.set.byId.get(flagId)?.definition.overrides) || [])];
  const proposed = { ...definitionOf(fields, flagId ?? 0, (before?.version ?? 0) + 1), overrides };
  const running = before ? { ...definitionOf(before, before.id, before.version), overrides } : null;
  const { job, needs } = prepareJob(project, proposed, running);
  const bounds = { deadline, mostDistinctIds, sample, now };
  const { groups: all, searched } = await search(
    deps,
    projectId,
    job,
    personPages(projectId, needs),
    bounds,
    signal,
  );
  const changes = all.filter(isChange);
  return {
    searched,
    proposed: countsOf(all, 'proposed'),
    running: running && countsOf(all, 'running'),
    changed: changes.reduce((sum, one) => sum + one.count, 0),
    changes: changes
      .map((one) => ({ from: one.running?.value ?? false, to: one.proposed.value, count: one.count }))
      .sort((left, right) => right.count - left.count),
    sample: chosen(all, sample),
    rests_on: basisOf(proposed, searched.is_complete),
  };
}
