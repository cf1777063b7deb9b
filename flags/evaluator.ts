import type { Queryable } from '../db/pool.ts';
import { personProperty, withInitial } from '../properties/index.ts';
import type { Definitions, ProjectFlags } from './cache/definitions.ts';
import type { CompiledFlag } from './engine/compile.ts';
import { own } from './engine/definition.ts';
import { Evaluation, type Watch } from './engine/evaluate.ts';
import { type Needs, needsOf } from './engine/flag-set.ts';
import { type Subject, UnknownValueError } from './engine/subject.ts';
import type { Properties, Subjects } from './reads/subjects.ts';
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

const REQUIRED_BY_SURVEYS = 'survey-targeting-';

/** Which flags exist for a request. */
function filterOf(request: FlagRequest): (flag: CompiledFlag) => boolean {
  const { runtime, contexts, surveysOnly } = request;
  return ({ definition }) => {
    if (!definition.isActive || definition.hasEncryptedPayloads) return false;
    if (definition.runtime !== 'all' && runtime !== 'all' && definition.runtime !== runtime) return false;
    if (contexts && contexts.length > 0 && definition.contexts.length > 0) {
      if (!definition.contexts.some((one) => contexts.includes(one))) return false;
    }
    return !surveysOnly || definition.key.startsWith(REQUIRED_BY_SURVEYS);
  };
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

const has = (properties: Properties, key: string) =>
  Object.hasOwn(properties, key) && properties[key] !== null && properties[key] !== undefined;

/** Whether the request itself says all that may be asked of the person. */
function saysAll(request: FlagRequest, needs: Needs): boolean {
  const { personProperties, place } = request;
  return needs.properties.every(
    (key) => key === 'distinct_id' || Object.hasOwn(personProperties, key) || Object.hasOwn(place, key),
  );
}

function known<T>(value: T | 'failed'): T {
  if (value === 'failed') throw new UnknownValueError('database_error');
  return value;
}

function subjectOf({ set }: ProjectFlags, request: FlagRequest, stored: Stored): Subject {
  const { distinctId, personProperties, place } = request;
  const indexes = new Map<number, string>();
  for (const [type, key] of Object.entries(request.groups)) {
    const index = set.groupTypes.get(type);
    if (index !== undefined && key !== '') indexes.set(index, key);
  }
  const typeOf = new Map([...set.groupTypes].map(([type, index]) => [index, type]));
  const lookUp = (key: string): unknown => {
    // What the request says counts most; its place fills what it leaves open.
    if (has(personProperties, key)) return personProperties[key];
    if (Object.hasOwn(place, key)) return place[key];
    if (Object.hasOwn(personProperties, key)) return personProperties[key];
    const person = known(stored.person);
    if (person && Object.hasOwn(person, key)) return person[key];
    return undefined;
  };
  const property = (key: string): unknown => {
    if (key === 'distinct_id' && !Object.hasOwn(personProperties, key)) return distinctId;
    return personProperty(lookUp, key);
  };
  return {
    distinctId,
    deviceId: request.deviceId,
    property,
    group: (index) => indexes.get(index),
    groupProperty(index, key) {
      const type = typeOf.get(index);
      const given = type === undefined ? undefined : own(request.groupProperties, type);
      if (given !== undefined && Object.hasOwn(given as Properties, key)) return (given as Properties)[key];
      const group = known(stored.groups.get(index));
      if (group && Object.hasOwn(group, key)) return group[key];
      return key === '$group_key' ? indexes.get(index) : undefined;
    },
    inStatic: (cohortId) => known(stored.staticCohorts).has(cohortId),
    hashKey(flagKey) {
      if (stored.hashKeys === 'failed') throw new UnknownValueError('hash_key_override_error');
      return stored.hashKeys.get(flagKey)?.hashKey ?? (request.anonDistinctId || undefined);
    },
  };
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
    const orFailed = <T>(promise: Promise<T>): Promise<T | 'failed'> => promise.catch(() => 'failed');
    const names = JSON.stringify(withInitial(needs.properties));
    const groupNames = JSON.stringify(needs.groupProperties);
    return Promise.all([
      readsPerson ? orFailed(subjects.person({ projectId, distinctId, names })) : undefined,
      Promise.all(
        groups.map(async ({ index, key }) => {
          const properties = await orFailed(subjects.group({ projectId, index, key, names: groupNames }));
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
    const exists = filterOf(request);
    const candidates = request.keys ? withAsked(project, request.keys) : set.flags;
    const flags = candidates.filter(exists);
    const needs = request.keys ? needsOf(flags, set.byId, set.cohorts) : set.needs;
    const hasCircle = set.circular.some(
      (flag) => exists(flag) && (!request.keys || request.keys.includes(flag.definition.key)),
    );
    const finish = (stored: Stored): Evaluated => {
      const subject = subjectOf(project, request, stored);
      const evaluation = new Evaluation(set, subject, now(), exists, watch);
      return { project, flags, evaluation, subject, hasCircle };
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
