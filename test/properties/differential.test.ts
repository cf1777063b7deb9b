// Seeded random filters against random events: the matcher, bytecode in the machine, JavaScript, and SQL on
// Postgres agree, but for what docs/properties.md lists.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { build, type Expr } from '../../hog/ast/index.ts';
import { compileBytecode } from '../../hog/bytecode/index.ts';
import { compileJavaScript } from '../../hog/javascript/index.ts';
import { createParser } from '../../hog/parser/index.ts';
import { createSchema, printStatement, selection } from '../../hog/sql/index.ts';
import {
  type ActionStep,
  type FilterNode,
  type FunctionFilters,
  functionFilterExpression,
  type Lookup,
  type PropertyFilter,
  prepareMatcher,
  readFilters,
  readFunctionFilters,
} from '../../properties/index.ts';
import type { Moment } from '../../values/dates.ts';
import { eventsDatabase } from '../hog/sql/database.ts';
import { PROJECT } from '../hog/sql/tables.ts';
import { evaluate } from '../hog/support/evaluate.ts';
import { Random } from '../hog/support/random.ts';
import { PATIENCE } from '../support/eventually.ts';
import { rounds } from '../support/rounds.ts';
import { isKnownDifference } from './differences.ts';
import {
  document,
  event,
  type GeneratedEvent,
  GROUP_KEYS,
  groupProperties,
  HOGQL,
} from './generate-filter.ts';
import { NO_STEP } from './no-step.ts';

const FILTERS = rounds(350, 20_000);
const EVENTS = 25;
const SCHEMA = createSchema('on event');
const ZONES: [zone: string, now: string][] = [
  ['UTC', '2026-03-15T12:00:00Z'],
  ['America/New_York', '2026-04-08T06:30:00Z'],
  ['Europe/Berlin', '2025-11-26T01:30:00Z'],
];

const ACTIONS = new Map<number, ActionStep[]>([
  [1, [{ ...NO_STEP, event: 'e1', properties: readFilters([{ key: 'plan', value: 'pro' }]) }]],
  [
    2,
    [
      { ...NO_STEP, event: 'e2' },
      { ...NO_STEP, properties: readFilters([{ key: 'price', operator: 'gt', value: 0 }]) },
    ],
  ],
]);
const TEST_ACCOUNTS = readFilters({
  type: 'OR',
  values: [
    { key: 'email', type: 'person', operator: 'not_icontains', value: '@posthog.com' },
    { key: 'plan', value: 'pro' },
  ],
});

type Groups = ReadonlyMap<string, Record<string, unknown>>;

const globalsOf = (one: GeneratedEvent, groups: Groups) => ({
  event: one.event,
  distinct_id: one.distinct_id,
  properties: one.properties,
  person: one.person_properties === null ? null : { properties: one.person_properties },
  group_0: one.group_0 === null ? null : { properties: groups.get(one.group_0) },
  elements_chain: one.elements_chain,
  elements_chain_href: one.elements_chain_href,
  elements_chain_texts: one.elements_chain_texts,
});

function propertyOf(filter: PropertyFilter, one: GeneratedEvent, groups: Groups): unknown {
  const { key, type } = filter;
  const own = (bag: object | null | undefined, name: string): unknown =>
    bag && Object.hasOwn(bag, name) ? (bag as Record<string, unknown>)[name] : undefined;
  if (type === 'person') return own(one.person_properties, key);
  if (type === 'group') return own(groups.get(one.group_0 ?? ''), key);
  if (type === 'event_metadata') return own(one, key);
  if (type === 'feature') return own(one.properties, `$feature/${key}`);
  return own(one.properties, key);
}

const conditionsOf = (node: FilterNode): PropertyFilter[] =>
  node.kind === 'property' ? [node] : node.values.flatMap(conditionsOf);

/** What takes part in the decision, with the conditions of its actions. */
function allConditions(read: FunctionFilters): PropertyFilter[] {
  const steps = read.entries.flatMap(({ type, id }) =>
    type === 'actions' ? (ACTIONS.get(id as number) ?? []) : [],
  );
  return [
    read.properties,
    ...read.entries.map((entry) => entry.properties),
    ...steps.flatMap((step) => step.properties ?? []),
    ...(read.filterTestAccounts ? [TEST_ACCOUNTS] : []),
  ].flatMap(conditionsOf);
}

/** By the matcher, put together by hand; null where something takes part that is no property. */
function prepareByMatcher(
  read: FunctionFilters,
): ((one: GeneratedEvent, groups: Groups, moment: Moment) => boolean) | null {
  if (allConditions(read).some(({ type }) => type === 'element' || type === 'hogql')) return null;
  type Part = (one: GeneratedEvent, lookup: Lookup, moment: Moment) => boolean;
  const conditions = (node: FilterNode): Part => {
    const matches = prepareMatcher(node, 'filter');
    return (_one, lookup, moment) => matches(lookup, moment);
  };
  const step = ({ event: name, properties: asked }: ActionStep): Part => {
    const matches = asked === null ? null : conditions(asked);
    return (one, lookup, moment) =>
      (name === null || one.event === name) && (matches === null || matches(one, lookup, moment));
  };
  const entries = read.entries.map(({ type, id, properties: asked }): Part => {
    const matches = conditions(asked);
    const steps = type === 'actions' ? (ACTIONS.get(id as number) ?? []).map(step) : null;
    return (one, lookup, moment) =>
      (steps === null ? id === null || one.event === id : steps.some((is) => is(one, lookup, moment))) &&
      matches(one, lookup, moment);
  });
  const always = [read.properties, ...(read.filterTestAccounts ? [TEST_ACCOUNTS] : [])].map(conditions);
  return (one, groups, moment) => {
    const lookup: Lookup = (filter) => propertyOf(filter, one, groups);
    return (
      always.every((matches) => matches(one, lookup, moment)) &&
      (entries.length === 0 || entries.some((matches) => matches(one, lookup, moment)))
    );
  };
}

describe('random filters', () => {
  const database = eventsDatabase();
  const parser = createParser({ timeoutMs: PATIENCE });
  const hogql = new Map<string, Expr>();
  beforeAll(async () => {
    for (const source of HOGQL) hogql.set(source, await parser.expression(source));
  });
  afterAll(() => parser.close());

  test.each(ZONES)(
    'in %s',
    async (timezone, now) => {
      const random = new Random(Date.parse(now) / 1_000);
      const moment = { now: Date.parse(now), timezone };
      const groups: Groups = new Map(GROUP_KEYS.map((key) => [key, groupProperties(random)]));
      const events = Array.from({ length: EVENTS }, () => event(random));
      await database.client().query('truncate hogql.groups');
      for (const [key, bag] of groups) {
        await database
          .client()
          .query('insert into hogql.groups values ($1, 0, $2, now(), now(), $3)', [
            PROJECT,
            key,
            JSON.stringify(bag),
          ]);
      }
      await database.replaceEvents(
        events.map((one, index) => ({
          ...one,
          uuid: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
        })),
      );

      const wrong: string[] = [];
      const count = { matcher: 0, machine: 0, sql: 0, known: 0, matched: 0 };
      for (let i = 0; i < FILTERS; i++) {
        const source = document(random);
        const read = readFunctionFilters(source);
        const options = { moment, hogql, actions: ACTIONS, testAccounts: TEST_ACCOUNTS };
        const tree = functionFilterExpression(read, { ...options, scope: 'realtime' });
        // As it is stored.
        const code = JSON.parse(JSON.stringify(compileBytecode(tree)));
        const byJavaScript = compileJavaScript(tree).evaluator();
        const byMatcher = prepareByMatcher(read);
        const where = functionFilterExpression(read, { ...options, scope: 'events' });
        const statement = printStatement(
          selection({ table: 'events', select: [build.field('uuid')], where }),
          {
            schema: SCHEMA,
            projectId: PROJECT,
            timezone,
          },
        );
        const rows = new Set(
          (await database.query(statement)).map(([uuid]) => Number((uuid as string).slice(-12))),
        );
        const asked = allConditions(read);
        for (const [index, one] of events.entries()) {
          const globals = globalsOf(one, groups);
          const answer = evaluate(code, { globals });
          const javaScript = byJavaScript(globals);
          const matcher = byMatcher === null ? answer : byMatcher(one, groups, moment);
          const known = asked.some((filter) =>
            isKnownDifference(filter.operator, filter.value, propertyOf(filter, one, groups)),
          );
          const sql = known ? answer : rows.has(index);
          count.machine++;
          count.matched += answer === true ? 1 : 0;
          count.matcher += byMatcher === null ? 0 : 1;
          count.sql += known ? 0 : 1;
          count.known += known ? 1 : 0;
          if (answer !== javaScript || answer !== matcher || answer !== sql) {
            const conditions = asked.map((filter) => [filter, propertyOf(filter, one, groups)]);
            wrong.push(
              JSON.stringify({ answer, javaScript, matcher, sql, event: one.event, source, conditions }),
            );
          }
        }
      }
      expect(wrong.slice(0, 5)).toEqual([]);
      // The generator asks questions that are worth asking.
      expect(count.matcher).toBeGreaterThan(count.machine * 0.4);
      expect(count.sql).toBeGreaterThan(count.machine * 0.7);
      expect(count.matched).toBeGreaterThan(count.machine * 0.15);
      expect(count.matched).toBeLessThan(count.machine * 0.85);
    },
    1_800_000,
  );
});
