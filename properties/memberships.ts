// Decides whether a person is in a cohort: listed in it, or matched by its filters. Flags, counts and queries share this.

import type { Moment } from '../values/dates.ts';
import { ExactNumber } from '../values/exact-json.ts';
import { isObject } from '../values/json-object.ts';
import type { PropertyFilter } from './filter.ts';
import { passes, prepareTest } from './matcher.ts';
import { operatorOf } from './operators.ts';
import type { Test } from './test-table.ts';

/** A cohort as it is stored, with its filters parsed. */
export interface CohortDefinition {
  id: number;
  isStatic: boolean;
  filters: unknown;
}

/** What a person shows to cohorts. */
export interface CohortMember {
  property(key: string): unknown;
  inStatic(cohortId: number): boolean;
}

/** Why a membership cannot be decided. */
export type MembershipFailure = 'dependency_not_found_cohort' | 'dependency_cycle_cohort';

/** What has to be known of a person to decide whether they are in a cohort. */
export interface CohortNeeds {
  properties: readonly string[];
  staticCohorts: readonly number[];
}

/** The conditions of a cohort, as a tree. */
export type CohortNode =
  | { kind: 'all' | 'any'; nodes: readonly CohortNode[] }
  | { kind: 'property'; key: string; test: Test; negation: boolean; filter: PropertyFilter }
  | { kind: 'cohort'; id: number; wanted: boolean }
  /** `document`: a condition that nobody can test. Without one, the cohort has no conditions. */
  | { kind: 'never'; document?: unknown };

type Node = CohortNode;

interface Prepared {
  isStatic: boolean;
  root: Node;
  properties: readonly string[];
  asks: readonly number[];
}

const NEVER: Node = { kind: 'never' };
const MOST_CONDITIONS = 10_000;
const MOST_DEPTH = 20;

const isScalar = (value: unknown): boolean =>
  ['string', 'number', 'boolean'].includes(typeof value) || value instanceof ExactNumber;

function cohortId(value: unknown): number | null {
  const id = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(id) && (id as number) >= 0 ? (id as number) : null;
}

/** Collects what a tree asks for while it is prepared. */
class Reading {
  readonly properties = new Set<string>();
  readonly asks = new Set<number>();
  #conditions = 0;

  node(document: unknown, depth: number, inOr: boolean): Node {
    if (!isObject(document) || depth > MOST_DEPTH) return { kind: 'never', document };
    if (Array.isArray(document.values)) {
      const isOr = document.type === 'OR';
      const nodes = document.values.map((one) => this.node(one, depth + 1, isOr));
      return { kind: isOr ? 'any' : 'all', nodes };
    }
    this.#conditions += 1;
    const read = this.#conditions > MOST_CONDITIONS ? NEVER : this.#condition(document, inOr);
    return read === NEVER ? { kind: 'never', document } : read;
  }

  #condition(document: Record<string, unknown>, inOr: boolean): Node {
    const negation = document.negation === true;
    if (document.type === 'cohort' || document.type === 'static-cohort') {
      const id = cohortId(document.value);
      const operator = document.operator ?? 'in';
      if (id === null || (operator !== 'in' && operator !== 'not_in' && operator !== 'exact')) return NEVER;
      this.asks.add(id);
      // In a list of alternatives, the negation of a nested cohort does not count.
      return { kind: 'cohort', id, wanted: (operator !== 'not_in') !== (negation && !inOr) };
    }
    const operator = operatorOf(document.operator);
    const { key, value = null } = document;
    const isProperty = document.type === undefined || document.type === null || document.type === 'person';
    if (!isProperty || operator === null || (typeof key !== 'string' && typeof key !== 'number'))
      return NEVER;
    if (operator === 'in' || operator === 'not_in' || operator === 'flag_evaluates_to') return NEVER;
    if (value !== null && !isScalar(value) && !(Array.isArray(value) && value.every(isScalar))) return NEVER;
    const filter: PropertyFilter = {
      ...{ kind: 'property', type: 'person', key: String(key), operator, groupTypeIndex: null },
      ...{ value: value as PropertyFilter['value'], negation, path: '' },
    } as PropertyFilter;
    this.properties.add(filter.key);
    return { kind: 'property', key: filter.key, test: prepareTest(filter, 'flag'), negation, filter };
  }
}

function prepare({ isStatic, filters }: CohortDefinition): Prepared {
  const reading = new Reading();
  const document = isObject(filters) ? filters.properties : undefined;
  const root = isStatic ? NEVER : reading.node(document, 0, false);
  // A cohort without conditions has no members.
  const isEmpty = root.kind !== 'never' && 'nodes' in root && !hasConditions(root);
  return {
    isStatic,
    root: isEmpty ? NEVER : root,
    properties: [...reading.properties],
    asks: [...reading.asks],
  };
}

/** What was made of definitions. They do not change. */
const preparedFor = new WeakMap<CohortDefinition, Prepared>();

/** Prepares a cohort, once. Whoever has many long ones does so before they are put together, with rests between them. */
export function prepareCohort(definition: CohortDefinition): Prepared {
  const prepared = preparedFor.get(definition) ?? prepare(definition);
  preparedFor.set(definition, prepared);
  return prepared;
}

/** Returns the cohorts that a cohort names. */
export const cohortsNamedBy = (definition: CohortDefinition): readonly number[] => prepare(definition).asks;

const hasConditions = (node: Node): boolean => ('nodes' in node ? node.nodes.some(hasConditions) : true);

/** The cohorts of a project, ready to be asked. */
export class Cohorts {
  readonly #cohorts = new Map<number, Prepared>();
  readonly #answers = new WeakMap<CohortMember, Map<number, boolean>>();
  readonly #failures = new Map<number, MembershipFailure | null>();

  constructor(definitions: Iterable<CohortDefinition>) {
    for (const definition of definitions) this.#cohorts.set(definition.id, prepareCohort(definition));
  }

  /** Whether a person is in a cohort. What was decided for the same person once is not decided again. */
  decide(id: number, person: CohortMember, moment: Moment): boolean | MembershipFailure {
    return this.failureOf(id) ?? this.#isMember(id, person, moment);
  }

  /** The conditions of a cohort. Null: it is static. Undefined: there is no such cohort. */
  conditionsOf(id: number): CohortNode | null | undefined {
    const cohort = this.#cohorts.get(id);
    return cohort?.isStatic ? null : cohort?.root;
  }

  /** Why nobody's membership in a cohort can be decided. Undefined: it can be. */
  failureOf(id: number): MembershipFailure | undefined {
    let failure = this.#failures.get(id);
    if (failure === undefined) {
      failure = this.#check(id);
      this.#failures.set(id, failure);
    }
    return failure ?? undefined;
  }

  /** What has to be known of a person, for a cohort and those that it names. */
  needs(id: number): CohortNeeds {
    const properties = new Set<string>();
    const staticCohorts = new Set<number>();
    for (const one of this.#reached(id)) {
      const cohort = this.#cohorts.get(one);
      if (!cohort) continue;
      if (cohort.isStatic) staticCohorts.add(one);
      for (const name of cohort.properties) properties.add(name);
    }
    return { properties: [...properties], staticCohorts: [...staticCohorts] };
  }

  /** A cohort and all that it names, directly or through others. */
  #reached(id: number): Set<number> {
    const reached = new Set([id]);
    for (const one of reached) for (const next of this.#cohorts.get(one)?.asks ?? []) reached.add(next);
    return reached;
  }

  #check(id: number): MembershipFailure | null {
    const reached = this.#reached(id);
    for (const one of reached) if (!this.#cohorts.has(one)) return 'dependency_not_found_cohort';
    // Those that name nobody who is left are taken away, again and again. What stays is on a circle or names one.
    const left = new Set(reached);
    for (let before = -1; before !== left.size; ) {
      before = left.size;
      for (const one of left) {
        if (!this.#cohorts.get(one)?.asks.some((next) => left.has(next))) left.delete(one);
      }
    }
    return left.size > 0 ? 'dependency_cycle_cohort' : null;
  }

  #isMember(id: number, person: CohortMember, moment: Moment): boolean {
    let answers = this.#answers.get(person);
    if (!answers) {
      answers = new Map();
      this.#answers.set(person, answers);
    }
    const known = answers.get(id);
    if (known !== undefined) return known;
    const cohort = this.#cohorts.get(id) as Prepared;
    const member = cohort.isStatic ? person.inStatic(id) : this.#matches(cohort.root, person, moment);
    answers.set(id, member);
    return member;
  }

  #matches(node: Node, person: CohortMember, moment: Moment): boolean {
    switch (node.kind) {
      case 'all':
        return node.nodes.every((one) => this.#matches(one, person, moment));
      case 'any':
        return node.nodes.some((one) => this.#matches(one, person, moment));
      case 'property':
        return passes(node.test, person.property(node.key), moment) !== node.negation;
      case 'cohort':
        return this.#isMember(node.id, person, moment) === node.wanted;
      case 'never':
        return false;
    }
  }
}
