import type { Queryable } from '../../db/pool.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import type { Beside } from '../rows/events.ts';
import { changeCounts, type Reacting, type ReactingRow, reactingFunctions } from '../rows/reacting.ts';
import type { MaskingRule } from '../rules/masking.ts';
import { filtersOf } from '../rules/variants.ts';
import { wantedNames } from '../rules/wanted-names.ts';
import { staticCohortsOf } from '../static-cohorts.ts';
import type { Definitions, Trigger } from './match.ts';

/** Projects with the version of their definitions. */
export type Versions = [projectId: number, version: number][];

const MOST_PROJECTS = 2_000;

/** What is known of the functions of a project. */
export interface Known {
  definitions: Definitions;
  masking: ReadonlyMap<string, MaskingRule>;
  readsGroups: boolean;
  /** The static cohorts that filters ask for. */
  cohorts: readonly number[];
  /** The functions that may want any event, and those that name some. */
  ofAny: readonly Trigger[];
  byName: ReadonlyMap<string, readonly Trigger[]>;
}

/** The functions of projects that react to events, in memory. */
export class DefinitionCache {
  readonly #pool: Queryable;
  readonly #site: string;
  readonly #known = new Map<number, Known>();

  constructor(pool: Queryable, site: string) {
    this.#pool = pool;
    this.#site = site;
  }

  /** Loads what has changed. Projects without functions are left out of the answer. */
  async current(client: Queryable, projectIds: readonly number[]): Promise<Versions> {
    const counts = await changeCounts(client, projectIds);
    const versions: Versions = [];
    for (const [projectId, version] of counts) {
      let known = this.#known.get(projectId);
      if (known?.definitions.version !== version) {
        const loaded = await this.#load(projectId, version);
        if (!loaded) continue;
        known = loaded;
      }
      // The one that was used longest ago is the first.
      this.#known.delete(projectId);
      this.#known.set(projectId, known);
      versions.push([projectId, version]);
    }
    while (this.#known.size > MOST_PROJECTS + projectIds.length) {
      this.#known.delete(this.#known.keys().next().value as number);
    }
    return versions;
  }

  get(projectId: number): Definitions {
    return (this.#known.get(projectId) as Known).definitions;
  }

  masking(projectId: number, functionId: string): MaskingRule | null {
    return this.#known.get(projectId)?.masking.get(functionId) ?? null;
  }

  /** The functions that may want an event of this name. Null: of a name that no function has. */
  candidates(projectId: number, name: string | null): readonly Trigger[] {
    const { ofAny = [], byName } = this.#known.get(projectId) ?? {};
    return name === null ? ofAny : [...(byName?.get(name) ?? []), ...ofAny];
  }

  /** What the functions of projects have to know beside their events. */
  beside(projectIds: readonly number[]): Beside {
    return besideOf(projectIds.flatMap((one) => this.#known.get(one) ?? []));
  }

  async #load(projectId: number, version: number): Promise<Known | undefined> {
    const found = await reactingFunctions(this.#pool, projectId);
    if (!found) return undefined;
    return knownOf(found, version, this.#site);
  }
}

/** What functions have to know beside the events. */
export function besideOf(all: readonly Known[]): Beside {
  const idOf = ({ definitions }: Known) => definitions.projectId;
  const listing = all.filter(({ cohorts }) => cohorts.length > 0);
  return {
    groupsOf: all.filter(({ readsGroups }) => readsGroups).map(idOf),
    listedOf: { projects: listing.map(idOf), cohorts: listing.flatMap(({ cohorts }) => cohorts) },
  };
}

/** What one function has to know, and what its filters ask for. */
interface Prepared {
  trigger: Trigger;
  readsGroups: boolean;
  cohorts: readonly number[];
}

/**
 * Prepares a function. One that is damaged may want any event, and counts as one whose filters fail: it concerns no other, and
 * whoever looks at it learns of it.
 */
function preparedOf(row: ReactingRow): Prepared {
  try {
    const trigger = triggerOf(row);
    const readsGroups = trigger.readsGroups || looksAtGroups(trigger);
    return { trigger, readsGroups, cohorts: staticCohortsOf([filtersOf(row)]) };
  } catch {
    const { id, name, version, enabled_at: enabledAt } = row;
    const nothing = { names: null, own: null, mappings: null, masking: null, readsGroups: false };
    return { trigger: { id, name, version, enabledAt, ...nothing }, readsGroups: false, cohorts: [] };
  }
}

/** Prepares functions of a project for the question which events they want. */
export function knownOf({ project, functions }: Reacting, version: number, site: string): Known {
  const prepared = functions.map(preparedOf);
  const triggers = prepared.map(({ trigger }) => trigger);
  return {
    definitions: { projectId: project.id, version, project, site, triggers },
    masking: new Map(functions.flatMap(({ id, masking }) => (masking ? [[id, masking]] : []))),
    cohorts: [...new Set(prepared.flatMap(({ cohorts }) => cohorts))],
    readsGroups: prepared.some((one) => one.readsGroups),
    ofAny: triggers.filter((one) => one.names === null),
    byName: byNames(triggers),
  };
}

function byNames(triggers: readonly Trigger[]): Map<string, Trigger[]> {
  const found = new Map<string, Trigger[]>();
  for (const one of triggers) {
    for (const name of new Set(one.names)) {
      const list = found.get(name);
      if (list) list.push(one);
      else found.set(name, [one]);
    }
  }
  return found;
}

const GROUP = /^\$?group_\d$/;
const namesGroup = (code: Bytecode | null) =>
  code?.some((one) => typeof one === 'string' && (one === 'groups' || GROUP.test(one))) ?? false;
const looksAtGroups = ({ own, mappings, masking }: Trigger) =>
  namesGroup(own) || namesGroup(masking) || (mappings ?? []).some((one) => namesGroup(one.filters));

function triggerOf(row: ReactingRow): Trigger {
  const { id, name, version, filters, mappings, masking } = row;
  const { own, mappings: mapped } = filtersOf(row);
  return {
    ...{ id, name, version, own, enabledAt: row.enabled_at, readsGroups: row.reads_groups },
    names: mappings ? wantedNames(mappings.map((one) => one.filters ?? {})) : wantedNames([filters]),
    mappings:
      mapped?.map((one, index) => ({
        filters: one,
        isDisabled: mappings?.[index]?.disabled === true,
      })) ?? null,
    masking: (masking?.bytecode ?? null) as Bytecode | null,
  };
}
