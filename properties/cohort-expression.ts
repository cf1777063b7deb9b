// Puts the conditions of cohorts into filters that run in real time. A cohort has one meaning, that of flags, and operators of
// flags differ from those of filters. So each condition becomes a call of one function, which tests as flags do.
import { LRUCache } from 'lru-cache';
import { build, type Compare, type Expr, isNode, nodesOf } from '../hog/ast/index.ts';
import { parseExactJson } from '../values/exact-json.ts';
import { FilterError } from './errors.ts';
import type { FilterValue, PropertyFilter } from './filter.ts';
import { initialOf } from './initial-properties.ts';
import { passes, prepareTest } from './matcher.ts';
import type { CohortNode, Cohorts } from './memberships.ts';
import type { Operator } from './operators.ts';
import type { Test } from './test-table.ts';

/** The function that tests a property of a person. Only filters have it. */
export const COHORT_TEST = 'matchesCohortCondition';

/** What a filter sees of static cohorts: the ids of those that list the person. Whoever asks the filter looks them up. */
export const COHORT_IDS = '$cohort_ids';
/** The function of the library that looks an id up there. It fails if nobody has looked them up. */
export const LISTED_TEST = 'inCohort';

/** How much of cohorts one filter takes: conditions, characters of their values, and cohorts in cohorts. */
export const INLINE_LIMITS = { conditions: 500, characters: 100_000, depth: 20 } as const;

const FALSE = build.constant(false);
const PERSON = ['person', 'properties'] as const;

const all = (exprs: Expr[]): Expr =>
  exprs.length === 1
    ? (exprs[0] as Expr)
    : exprs.length === 0
      ? build.constant(true)
      : { kind: 'and', exprs };
const any = (exprs: Expr[]): Expr =>
  exprs.length === 1 ? (exprs[0] as Expr) : exprs.length === 0 ? FALSE : { kind: 'or', exprs };

const shown = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 60);

/** Inlines the cohorts of one filter. */
export class CohortInliner {
  readonly #cohorts: Cohorts;
  readonly #names: ReadonlyMap<number, string>;
  readonly #timezone: string;
  #conditions = 0;
  #characters = 0;

  constructor(cohorts: Cohorts, names: ReadonlyMap<number, string>, timezone: string) {
    this.#cohorts = cohorts;
    this.#names = names;
    this.#timezone = timezone;
  }

  /** Returns whether the person of an event is in a cohort. Throws a FilterError for one that cannot be inlined. */
  expression(id: number): Expr {
    return this.#cohort(id, []);
  }

  #cohort(id: number, outer: readonly number[]): Expr {
    const problem = (what: string, code?: 'unsupported') => {
      const [first] = outer;
      const text =
        first === undefined
          ? `${this.#name(id)} ${what}`
          : `${this.#name(first)} names ${this.#name(id)}, which ${what}`;
      return new FilterError(`${text.slice(0, 1).toUpperCase()}${text.slice(1)}`, '', code);
    };
    if (outer.includes(id)) throw problem('leads to itself');
    if (outer.length >= INLINE_LIMITS.depth)
      throw problem(`is inside of more than ${INLINE_LIMITS.depth} others`);
    const root = this.#cohorts.conditionsOf(id);
    if (root === undefined) throw problem('does not exist in this project, or was deleted');
    this.#count(id, 0);
    if (root === null) return build.call(LISTED_TEST, build.integer(id), build.field(COHORT_IDS));
    return this.#node(root, id, [...outer, id]);
  }

  #node(node: CohortNode, id: number, path: readonly number[]): Expr {
    switch (node.kind) {
      case 'all':
        return all(node.nodes.map((one) => this.#node(one, id, path)));
      case 'any':
        return any(node.nodes.map((one) => this.#node(one, id, path)));
      case 'cohort': {
        const member = this.#cohort(node.id, path);
        return node.wanted ? member : build.not(member);
      }
      case 'property':
        return this.#property(node.filter, id);
      case 'never':
        if (node.document === undefined) return FALSE;
        throw this.#refused(id, node.document as Record<string, unknown> | null);
    }
  }

  #property(filter: PropertyFilter, id: number): Expr {
    const { key, operator, value, negation } = filter;
    if (operator === 'is_cleaned_path_exact') throw this.#refused(id, { key, operator });
    const json = JSON.stringify(value);
    this.#count(id, json.length + key.length);
    const test = build.call(
      COHORT_TEST,
      ...[operator, json, this.#timezone].map((one) => build.constant(one)),
      ...propertyOf(key),
    );
    return negation ? build.not(test) : test;
  }

  /** Counts a condition or a cohort. */
  #count(id: number, characters: number): void {
    this.#conditions += 1;
    this.#characters += characters;
    if (this.#conditions > INLINE_LIMITS.conditions || this.#characters > INLINE_LIMITS.characters) {
      throw new FilterError(
        `The ${this.#name(id)} is too large: the cohorts of a filter have ${INLINE_LIMITS.conditions} conditions and ` +
          `${INLINE_LIMITS.characters} characters at most. Use a smaller cohort, or a property that says who is in it`,
      );
    }
  }

  #refused(id: number, document: Record<string, unknown> | null): FilterError {
    const { type = 'person', key, operator = 'exact' } = document ?? {};
    return new FilterError(
      `In ${this.#name(id)}, the condition on ${shown(key)} (type ${shown(type)}, operator ${shown(operator)}) cannot be tested in ` +
        'a function. Take it out of the cohort, or filter by properties',
      '',
      'unsupported',
    );
  }

  #name(id: number): string {
    const name = this.#names.get(id);
    return name === undefined ? `cohort ${id}` : `cohort ${id} (${shown(name)})`;
  }
}

/** Where HogQL finds the person of an event. */
const PERSON_IDS = ['person_id', 'person.id', 'pdi.person_id'];
/** Finds cohorts in a text of HogQL that is not parsed yet. It may also find numbers in texts or comments. */
const NAMED_COHORT = /\bcohort\s+(\d{1,15})/gi;

/** Returns the ids of the cohorts that a text in HogQL may name. */
export const cohortsInHogql = (text: string): number[] =>
  [...text.matchAll(NAMED_COHORT)].map(([, id]) => Number(id));

const asksForCohort = (node: object): node is Compare =>
  'op' in node && (node.op === 'in cohort' || node.op === 'not in cohort');

/** Puts cohorts into an expression of HogQL, in the place of `person_id IN COHORT 5`. */
export function inlineCohorts(expr: Expr, inCohort: (id: number) => Expr): Expr {
  const replaced = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(replaced);
    if (!isNode(value)) return value;
    if (asksForCohort(value)) return membership(value, inCohort);
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, replaced(one)]));
  };
  return [...nodesOf(expr)].some(asksForCohort) ? (replaced(expr) as Expr) : expr;
}

function membership({ op, left, right }: Compare, inCohort: (id: number) => Expr): Expr {
  if (left.kind !== 'field' || !PERSON_IDS.includes(left.chain.join('.')))
    throw new FilterError('Only a person is in a cohort. Write person_id IN COHORT 5');
  if (right.kind !== 'constant' || !Number.isSafeInteger(right.value))
    throw new FilterError('A cohort must be given by its number: person_id IN COHORT 5');
  const member = inCohort(right.value as number);
  return op === 'in cohort' ? member : build.not(member);
}

/**
 * What a test looks at: for each property the name, the value, and, if it is null, the names that the person has. In Hog, what
 * is missing is null, and flags tell the two apart.
 */
function propertyOf(key: string): Expr[] {
  // It belongs to the event, as it does to the request of a flag.
  if (key === 'distinct_id') return [build.constant(key), build.field(key), build.field(key)];
  return [key, ...initialOf(key)].flatMap((name) => {
    const value = build.field(...PERSON, name);
    const names = build.call('ifNull', value, build.call('keys', build.field(...PERSON)));
    return [build.constant(name), value, names];
  });
}

const tests = new LRUCache<string, Test>({ max: 2_000 });

function testOf(operator: string, json: string): Test {
  const key = `${operator} ${json}`;
  let test = tests.get(key);
  if (!test) {
    const value = parseExactJson(json) as FilterValue;
    const filter = {
      kind: 'property',
      type: 'person',
      key: '',
      operator: operator as Operator,
      groupTypeIndex: null,
    };
    test = prepareTest({ ...filter, value, negation: false, path: '' } as PropertyFilter, 'flag');
    tests.set(key, test);
  }
  return test;
}

/** Makes the function that tests conditions of cohorts. It never fails. */
export const cohortTest =
  (now: () => number) =>
  (...args: unknown[]): boolean => {
    const [operator, json, timezone, ...found] = args as string[];
    if (typeof operator !== 'string' || typeof json !== 'string' || typeof timezone !== 'string')
      return false;
    try {
      return passes(testOf(operator, json), valueIn(found), { now: now(), timezone });
    } catch {
      return false;
    }
  };

function valueIn(found: readonly unknown[]): unknown {
  for (let i = 0; i + 2 < found.length; i += 3) {
    const [name, value, names] = found.slice(i, i + 3);
    if (value !== null || (Array.isArray(names) && names.includes(name))) return value;
  }
  return undefined;
}
