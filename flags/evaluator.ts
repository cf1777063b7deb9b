import type { Queryable } from '../db/pool.ts';
import { personProperty, withInitial } from '../properties/index.ts';
import type { Definitions, ProjectFlags } from './cache/definitions.ts';
import type { CompiledFlag } from './engine/compile.ts';
import { own } from './engine/definition.ts';
import { Evaluation, type Watch } from './engine/evaluate.ts';
import { type FlagSet, type Needs, needsOf } from './engine/flag-set.ts';
import { preparedSelection, type Selection, selectionOf } from './engine/selection.ts';
import { type Subject, UnknownValueError } from './engine/subject.ts';
import type { Properties, Subjects } from './reads/subjects.ts';
import { SURVEY_FLAG_PREFIX } from './rows/flags.ts';
import { type HashKey, readHashKeys, rememberHashKeys } from './rows/hash-keys.ts';

/** For whom flags are evaluated, and which. */
export interface FlagRequest {
  distinctId: string;
  anonDistinctId: string;
  deviceId: string;
  /** The keys of groups, by type. */
  groups: Readonly<Record<string, string>>;
  personProperties: Properties;
  groupProperties: Readonly<Record<string, Properties>>;
  /** The place of the client's address, as properties. */
  place: Properties;
  /** Undefined: all. */
  keys?: readonly string[] | undefined;
  /** Where the flags are used. Undefined: unknown, so only flags for all places are told. */
  runtime?: 'all' | 'client' | 'server' | undefined;
  contexts?: readonly string[] | undefined;
  surveysOnly?: boolean;
}

export interface Evaluated {
  project: ProjectFlags;
  /** The flags that the request asks for, each to be evaluated by `evaluation`. */
  flags: readonly CompiledFlag[];
  selection: Selection;
  evaluation: Evaluation;
  subject: Subject;
  /** A flag that is asked for is on a circle. */
  hasCircle: boolean;
}

/** What the database says about a subject; `failed` where it did not answer. */
interface Stored {
  person: Properties | undefined | 'failed';
  groups: ReadonlyMap<number, Properties | undefined | 'failed'>;
  staticCohorts: ReadonlySet<number> | 'failed';
  hashKeys: ReadonlyMap<string, HashKey> | 'failed';
}

const NOTHING: Stored = {
  person: undefined,
  groups: new Map(),
  staticCohorts: new Set(),
  hashKeys: new Map(),
};

export interface EvaluatorOptions {
  definitions: Definitions;
  subjects: Subjects;
  /** Of which of these static cohorts the person of a distinct id is a member. */
  memberships(
    queryable: Queryable,
    projectId: number,
    distinctId: string,
    cohortIds: readonly number[],
  ): Promise<number[]>;
  now?: () => number;
}

/** Evaluates flags for requests. */
export interface Evaluator {
  /** Mostly without a promise. Undefined: there is no such project. */
  evaluate(
    projectId: number,
    request: FlagRequest,
    watch?: Watch,
  ): Evaluated | undefined | Promise<Evaluated | undefined>;
}

/** Which flags exist for a request. */
function filterOf(request: FlagRequest): (flag: CompiledFlag) => boolean {
  const { runtime, contexts, surveysOnly } = request;
  return ({ definition }) => {
    if (!definition.isActive || definition.hasEncryptedPayloads) return false;
    if (definition.runtime !== 'all' && runtime !== 'all' && definition.runtime !== runtime) return false;
    if (contexts && contexts.length > 0 && definition.contexts.length > 0) {
      if (!definition.contexts.some((one) => contexts.includes(one))) return false;
    }
    return !surveysOnly || definition.key.startsWith(SURVEY_FLAG_PREFIX);
  };
}

/** The selections of requests that ask for all flags, by where the flags are used. */
const selections = new WeakMap<FlagSet, Map<string | undefined, Selection>>();

function selectionFor(
  { set }: ProjectFlags,
  request: FlagRequest,
  exists: (flag: CompiledFlag) => boolean,
): Selection {
  const { runtime, contexts, surveysOnly } = request;
  if (surveysOnly || (contexts && contexts.length > 0)) return selectionOf(set.flags.filter(exists));
  let ofSet = selections.get(set);
  if (!ofSet) {
    ofSet = new Map();
    selections.set(set, ofSet);
  }
  let selection = ofSet.get(runtime);
  if (!selection) {
    selection = preparedSelection(set.flags.filter(exists));
    ofSet.set(runtime, selection);
  }
  return selection;
}

/** Flags by their keys, with all that they ask about. */
function withAsked({ set }: ProjectFlags, keys: readonly string[]): CompiledFlag[] {
  const wanted = new Set(keys.flatMap((key) => set.byKey.get(key) ?? []));
  for (const flag of wanted) {
    for (const id of flag.asks) {
      const asked = set.byId.get(id);
      if (asked) wanted.add(asked);
    }
  }
  return set.flags.filter((flag) => wanted.has(flag));
}

/** Whether the request itself says all that may be asked of the person. */
function saysAll(request: FlagRequest, needs: Needs): boolean {
  const { personProperties, place } = request;
  return needs.properties.every(
    (key) => key === 'distinct_id' || Object.hasOwn(personProperties, key) || Object.hasOwn(place, key),
  );
}

interface Names {
  person: string;
  group: string;
}

/** The names of the properties that flags may ask for, as JSON. The flags of a set always need the same. */
const names = new WeakMap<Needs, Names>();

function namesOf(needs: Needs): Names {
  let found = names.get(needs);
  if (!found) {
    found = {
      person: JSON.stringify(withInitial(needs.properties)),
      group: JSON.stringify(needs.groupProperties),
    };
    names.set(needs, found);
  }
  return found;
}

function known<T>(value: T | 'failed'): T {
  if (value === 'failed') throw new UnknownValueError('database_error');
  return value;
}

/** The one who asks, by what the request says and what is stored. */
class RequestSubject implements Subject {
  readonly distinctId: string;
  readonly deviceId: string;
  readonly #request: FlagRequest;
  readonly #stored: Stored;
  readonly #groupTypes: ReadonlyMap<string, number>;
  /** The types and keys of the request's groups, by the index of their type. Made when the first flag asks. */
  #groups: Map<number, { type: string; key: string }> | undefined;

  constructor({ set }: ProjectFlags, request: FlagRequest, stored: Stored) {
    this.distinctId = request.distinctId;
    this.deviceId = request.deviceId;
    this.#request = request;
    this.#stored = stored;
    this.#groupTypes = set.groupTypes;
  }

  property(key: string): unknown {
    if (key === 'distinct_id' && !Object.hasOwn(this.#request.personProperties, key)) return this.distinctId;
    return personProperty(this.#ofPerson, key);
  }

  group(index: number): string | undefined {
    return this.#group(index)?.key;
  }

  groupProperty(index: number, key: string): unknown {
    const named = this.#group(index);
    const given = named && own(this.#request.groupProperties, named.type);
    if (given !== undefined && Object.hasOwn(given as Properties, key)) return (given as Properties)[key];
    const group = known(this.#stored.groups.get(index));
    if (group && Object.hasOwn(group, key)) return group[key];
    return key === '$group_key' ? named?.key : undefined;
  }

  inStatic(cohortId: number): boolean {
    return known(this.#stored.staticCohorts).has(cohortId);
  }

  hashKey(flagKey: string): string | undefined {
    const { hashKeys } = this.#stored;
    if (hashKeys === 'failed') throw new UnknownValueError('hash_key_override_error');
    return hashKeys.get(flagKey)?.hashKey ?? (this.#request.anonDistinctId || undefined);
  }

  /** What the request says counts most; its place fills what it leaves open. */
  readonly #ofPerson = (key: string): unknown => {
    const { personProperties, place } = this.#request;
    const isGiven = Object.hasOwn(personProperties, key);
    const given = isGiven ? personProperties[key] : undefined;
    if (given !== undefined && given !== null) return given;
    if (Object.hasOwn(place, key)) return place[key];
    if (isGiven) return given;
    const person = known(this.#stored.person);
    return person && Object.hasOwn(person, key) ? person[key] : undefined;
  };

  #group(index: number): { type: string; key: string } | undefined {
    if (!this.#groups) {
      this.#groups = new Map();
      for (const [type, key] of Object.entries(this.#request.groups)) {
        const place = this.#groupTypes.get(type);
        if (place !== undefined && key !== '') this.#groups.set(place, { type, key });
      }
    }
    return this.#groups.get(index);
  }
}

export function createEvaluator(options: EvaluatorOptions): Evaluator {
  const { definitions, subjects, memberships, now = Date.now } = options;

  /** Reads by which ids somebody is counted, after what a new visitor becomes known by is remembered. */
  async function hashKeysOf(projectId: number, request: FlagRequest, needs: Needs) {
    const { distinctId, anonDistinctId } = request;
    const isKnown = anonDistinctId !== '' && anonDistinctId !== distinctId && distinctId !== '';
    const ids = isKnown ? [distinctId, anonDistinctId] : [distinctId];
    return subjects.ask(projectId, async (queryable) => {
      const before = await readHashKeys(queryable, projectId, ids);
      const open = isKnown ? needs.continuous.filter((key) => !before.get(key)?.isOwn) : [];
      if (open.length === 0) return before;
      const wanted = new Map(open.map((key) => [key, before.get(key)?.hashKey ?? anonDistinctId]));
      await rememberHashKeys(queryable, projectId, ids, wanted);
      // Another request may have been first. What is stored decides.
      return readHashKeys(queryable, projectId, ids);
    });
  }

  /** Reads what flags may ask for and the request leaves open. Undefined: nothing. */
  function read(project: ProjectFlags, request: FlagRequest, needs: Needs): Promise<Stored> | undefined {
    const { projectId, set } = project;
    const { distinctId } = request;
    const readsPerson = distinctId !== '' && !saysAll(request, needs);
    const groups = needs.groupProperties.length > 0 ? askedGroups(project, request, needs) : [];
    const readsCohorts = needs.staticCohorts.length > 0 && distinctId !== '';
    const readsKeys = needs.continuous.length > 0 && distinctId !== '';
    if (!readsPerson && groups.length === 0 && !readsCohorts && !readsKeys) return undefined;
    const names = namesOf(needs);
    // Most requests need no more, so for them there are no other promises.
    if (readsPerson && groups.length === 0 && !readsCohorts && !readsKeys) {
      return subjects.person({ projectId, distinctId, names: names.person }).then(
        (person) => ({ ...NOTHING, person }),
        () => ({ ...NOTHING, person: 'failed' as const }),
      );
    }
    const orFailed = <T>(promise: Promise<T>): Promise<T | 'failed'> => promise.catch(() => 'failed');
    return Promise.all([
      readsPerson ? orFailed(subjects.person({ projectId, distinctId, names: names.person })) : undefined,
      Promise.all(
        groups.map(async ({ index, key }) => {
          const properties = await orFailed(subjects.group({ projectId, index, key, names: names.group }));
          return [index, properties] as const;
        }),
      ),
      readsCohorts
        ? orFailed(
            subjects
              .ask(projectId, (queryable) =>
                memberships(queryable, projectId, distinctId, needs.staticCohorts),
              )
              .then((ids) => new Set(ids)),
          )
        : NOTHING.staticCohorts,
      readsKeys ? orFailed(hashKeysOf(projectId, request, needs)) : NOTHING.hashKeys,
    ]).then(([person, ofGroups, staticCohorts, hashKeys]) => ({
      person,
      groups: new Map(ofGroups),
      staticCohorts,
      hashKeys,
      set,
    }));
  }

  function evaluateIn(project: ProjectFlags, request: FlagRequest, watch: Watch | undefined) {
    const { set } = project;
    const { keys } = request;
    const exists = filterOf(request);
    const selection = keys
      ? selectionOf(withAsked(project, keys).filter(exists))
      : selectionFor(project, request, exists);
    const { flags } = selection;
    const needs = keys ? needsOf(flags, set.byId, set.cohorts) : set.needs;
    const hasCircle =
      set.circular.length > 0 &&
      set.circular.some((flag) => exists(flag) && (!keys || keys.includes(flag.definition.key)));
    const finish = (stored: Stored): Evaluated => {
      const subject = new RequestSubject(project, request, stored);
      const evaluation = new Evaluation(set, subject, now(), exists, watch);
      return { project, flags, selection, evaluation, subject, hasCircle };
    };
    const reading = read(project, request, needs);
    return reading ? reading.then(finish) : finish(NOTHING);
  }

  return {
    evaluate(projectId, request, watch) {
      const found = definitions.of(projectId);
      if (found instanceof Promise) {
        return found.then((project) => project && evaluateIn(project, request, watch));
      }
      return found && evaluateIn(found, request, watch);
    },
  };
}

/** The groups of a request whose stored properties may be asked for. */
function askedGroups(
  { set }: ProjectFlags,
  request: FlagRequest,
  needs: Needs,
): { index: number; key: string }[] {
  return Object.entries(request.groups).flatMap(([type, key]) => {
    const index = set.groupTypes.get(type);
    if (index === undefined || key === '') return [];
    const given = own(request.groupProperties, type) as Properties | undefined;
    return given && needs.groupProperties.every((name) => Object.hasOwn(given, name)) ? [] : [{ index, key }];
  });
}
