import { describe, expect, test } from '@jest/globals';
import { build } from '../../hog/ast/index.ts';
import { compileBytecode } from '../../hog/bytecode/index.ts';
import { compileJavaScript } from '../../hog/javascript/index.ts';
import {
  type ActionStep,
  actionIds,
  type FunctionFilterOptions,
  filterExpression,
  functionFilterExpression,
  functionHogqlSources,
  hogqlSources,
  prepareMatcher,
  readFilters,
  readFunctionFilters,
} from '../../properties/index.ts';
import { MOMENT } from './cases.ts';
import { NO_STEP } from './no-step.ts';

const REALTIME = { moment: MOMENT, scope: 'realtime' } as const;

const bytecodeOf = (document: unknown, options: Partial<FunctionFilterOptions> = {}) =>
  compileBytecode(functionFilterExpression(readFunctionFilters(document), { ...REALTIME, ...options }));

describe('bytecode of function filters', () => {
  test('nothing is true', () => {
    expect(bytecodeOf({})).toEqual(['_H', 1, 29]);
    expect(bytecodeOf(null)).toEqual(['_H', 1, 29]);
  });

  test('test accounts AND (event OR action), as the reference has it', () => {
    const document = {
      events: [{ id: '$pageview', name: '$pageview', type: 'events', order: 0 }],
      actions: [{ id: '3', name: 'Docs', type: 'actions', order: 1 }],
      filter_test_accounts: true,
    };
    const testAccounts = readFilters([
      { key: 'email', type: 'person', operator: 'not_icontains', value: '@posthog.com' },
    ]);
    const steps = [{ ...NO_STEP, event: '$pageview', url: 'docs', urlMatching: 'contains' as const }];
    expect(bytecodeOf(document, { testAccounts, actions: new Map([[3, steps]]) })).toEqual(
      JSON.parse(
        '["_H",1,32,"%@posthog.com%",32,"email",32,"properties",32,"person",1,3,2,"toString",1,20,32,"$pageview",' +
          '32,"event",1,1,11,32,"$pageview",32,"event",1,1,11,32,"%docs%",32,"$current_url",32,"properties",1,2,' +
          '17,3,2,4,2,3,2]',
      ),
    );
  });

  test('an event alone, an event with properties, every event', () => {
    expect(bytecodeOf({ events: [{ id: 'a', type: 'events' }] })).toEqual([
      '_H',
      1,
      32,
      'a',
      32,
      'event',
      1,
      1,
      11,
    ]);
    expect(
      bytecodeOf({ events: [{ id: 'a', type: 'events', properties: [{ key: 'p', value: 'x' }] }] }),
    ).toEqual(JSON.parse('["_H",1,32,"a",32,"event",1,1,11,32,"x",32,"p",32,"properties",1,2,11,3,2]'));
    expect(bytecodeOf({ events: [{ id: null, type: 'events' }] })).toEqual(['_H', 1, 29]);
  });

  test('test accounts that are joined by OR stay so', () => {
    const testAccounts = readFilters({
      type: 'OR',
      values: [
        { key: 'a', value: 1 },
        { key: 'b', value: 2 },
      ],
    });
    const filters = readFunctionFilters({ filter_test_accounts: true });
    const code = compileJavaScript(functionFilterExpression(filters, { ...REALTIME, testAccounts }));
    expect(code.run({ properties: { a: 1 } })).toMatchObject({ result: true });
    expect(code.run({ properties: { b: 2 } })).toMatchObject({ result: true });
    expect(code.run({ properties: {} })).toMatchObject({ result: false });
  });

  test('HogQL of test accounts and actions is to be parsed too', () => {
    const hogql = (key: string) => readFilters([{ key, type: 'hogql' }]);
    const surroundings = {
      testAccounts: hogql('1 = 1'),
      actions: new Map([
        [3, [{ ...NO_STEP, properties: hogql('2 = 2') }]],
        [4, [{ ...NO_STEP, properties: hogql('not asked for') }]],
      ]),
    };
    const document = { actions: [{ id: 3 }], properties: [{ key: '3 = 3', type: 'hogql' }] };
    const tested = readFunctionFilters({ ...document, filter_test_accounts: true });
    expect(functionHogqlSources(tested, surroundings)).toEqual(['1 = 1', '3 = 3', '2 = 2']);
    expect(functionHogqlSources(readFunctionFilters(document), surroundings)).toEqual(['3 = 3', '2 = 2']);
  });

  test.each([
    [{ events: [[]] }, 'An entry must be an object', 'events.0'],
    [{ events: {} }, 'events must be a list', 'events'],
    [{ events: [{ id: 5 }] }, 'The id of an event must be its name, a string', 'events.0.id'],
    [{ events: [{ id: '\0' }] }, 'A text must not contain the character 0', 'events.0.id'],
    [{ actions: [{ id: 'x' }] }, 'The id of an action must be a whole number', 'actions.0.id'],
    [{ filter_test_accounts: 'true' }, 'This must be true or false', 'filter_test_accounts'],
    [
      { events: [{ id: 'a', properties: 'x' }] },
      'A property filter must be an object',
      'events.0.properties',
    ],
    [[], 'Filters must be an object', ''],
  ])('%j is refused', (document, message, path) => {
    const read = () => readFunctionFilters(document);
    expect(read).toThrow(message);
    expect(read).toThrow(expect.objectContaining({ name: 'FilterError', path }) as never);
  });

  test('an action’s fault has a place', () => {
    const steps = [NO_STEP, { ...NO_STEP, event: '$autocapture', selector: 'a >' }];
    const filters = readFunctionFilters({ actions: [{ id: 1 }] });
    const compile = () => functionFilterExpression(filters, { ...REALTIME, actions: new Map([[1, steps]]) });
    expect(compile).toThrow(expect.objectContaining({ path: 'steps.1.selector' }) as never);
  });

  test('an action that is gone matches nothing', () => {
    const code = compileJavaScript(
      functionFilterExpression(readFunctionFilters({ actions: [{ id: 9, type: 'actions' }] }), REALTIME),
    );
    expect(code.run({ event: 'x', properties: {} })).toMatchObject({ result: false });
    expect(actionIds(readFunctionFilters({ actions: [{ id: '9' }, { id: 9 }, { id: 4 }] }))).toEqual([9, 4]);
  });
});

describe('subjects', () => {
  const field = (filter: object, scope: 'realtime' | 'events' | 'persons' | 'groups' = 'events') =>
    filterExpression(readFilters([{ value: 'x', ...filter }]), { moment: MOMENT, scope });

  test.each([
    [{ key: 'a' }, ['properties', 'a']],
    [{ key: '$elements_chain' }, ['elements_chain']],
    [{ key: 'a', type: 'person' }, ['person', 'properties', 'a']],
    [{ key: 'distinct_id', type: 'person' }, ['distinct_id']],
    [{ key: 'a', type: 'group', group_type_index: 2 }, ['group_2', 'properties', 'a']],
    [{ key: 'distinct_id', type: 'event_metadata' }, ['distinct_id']],
    [{ key: '$entry_utm_source', type: 'session' }, ['session', '$entry_utm_source']],
    [{ key: 'beta', type: 'feature' }, ['properties', '$feature/beta']],
    [{ key: '$feature/beta', type: 'feature' }, ['properties', '$feature/beta']],
  ])('%j', (filter, chain) => {
    expect(field(filter)).toEqual(build.compare('==', build.field(...chain), build.constant('x')));
  });

  test('in queries over persons and groups the properties are the row’s', () => {
    expect(field({ key: 'a', type: 'person' }, 'persons')).toEqual(
      build.compare('==', build.field('properties', 'a'), build.constant('x')),
    );
    expect(() => field({ key: 'a' }, 'persons')).toThrow(
      "The 'event' property filter does not work in 'person' scope",
    );
  });

  test('cohorts work in queries, not in real time', () => {
    const cohort = readFilters([{ key: 'id', type: 'cohort', value: 5 }]);
    expect(filterExpression(cohort, { moment: MOMENT, scope: 'events' })).toMatchObject({ op: 'in cohort' });
    const negated = readFilters([{ key: 'id', type: 'cohort', value: 5, negation: true }]);
    expect(filterExpression(negated, { moment: MOMENT, scope: 'events' })).toMatchObject({
      op: 'not in cohort',
    });
    const either = readFilters([{ key: 'id', type: 'cohort', value: [5, '7'] }]);
    expect(filterExpression(either, { moment: MOMENT, scope: 'events' })).toMatchObject({ kind: 'or' });
    const neither = readFilters([{ key: 'id', type: 'cohort', value: [5, 7], operator: 'not_in' }]);
    expect(filterExpression(neither, { moment: MOMENT, scope: 'events' })).toMatchObject({ kind: 'and' });
    expect(() => filterExpression(cohort, REALTIME)).toThrow(
      "Can't use cohorts in real-time filters. Please inline the relevant expressions (cohort id=5).",
    );
  });

  test('any condition can be negated', () => {
    const negated = field({ key: 'a', negation: true });
    expect(negated).toEqual(
      build.not(build.compare('==', build.field('properties', 'a'), build.constant('x'))),
    );
  });

  test('the matcher has no answer for what is no property', () => {
    for (const type of ['hogql', 'cohort', 'flag']) {
      const node = readFilters([{ key: '1', type, value: 1 }]);
      expect(() => prepareMatcher(node, 'filter')).toThrow(
        expect.objectContaining({ code: 'unsupported', path: '0' }) as never,
      );
    }
  });

  test('HogQL is parsed elsewhere and put in its place', () => {
    const node = readFilters([{ key: '1 + 1 = 2', type: 'hogql' }]);
    expect(hogqlSources(node)).toEqual(['1 + 1 = 2']);
    const hogql = new Map([['1 + 1 = 2', build.constant(true)]]);
    expect(filterExpression(node, { ...REALTIME, hogql })).toEqual(build.constant(true));
    expect(() => filterExpression(node, REALTIME)).toThrow('HogQL expressions do not work in this filter');
  });

  test('"true" of a property that is declared boolean is true', () => {
    const node = readFilters([{ key: 'a', value: 'true' }]);
    expect(filterExpression(node, { ...REALTIME, isBoolean: () => true })).toMatchObject({
      right: { value: true },
    });
    expect(filterExpression(node, REALTIME)).toMatchObject({ right: { value: 'true' } });
  });

  test('paths are cleaned by the project’s rules', () => {
    const node = readFilters([{ key: '$pathname', value: '/user/1', operator: 'is_cleaned_path_exact' }]);
    const pathCleaning = [{ regex: '\\d+', alias: ':id' }];
    expect(filterExpression(node, { moment: MOMENT, scope: 'events', pathCleaning })).toMatchObject({
      left: { name: 'replaceRegexpAll' },
      right: { name: 'replaceRegexpAll' },
    });
    expect(() => filterExpression(node, { ...REALTIME, pathCleaning })).toThrow('Cleaned paths');
  });

  test.each([
    [{ operator: 'regex', value: '(' }, 'Invalid regular expression'],
    [{ operator: 'is_date_before', value: 'soon' }, 'is_date_before operator requires a date'],
    [
      { operator: 'semver_tilde', value: '1' },
      "Tilde operator requires a valid semver string (e.g., '1.2.3')",
    ],
    [{ operator: 'semver_caret', value: 5 }, 'Caret operator requires a semver string value'],
    [{ operator: 'in', value: 'x' }, 'in operator requires a list of values'],
    [{ operator: 'starts_with', value: 'x' }, 'The operator starts_with does not work in this filter'],
    [{ operator: 'ends_with', value: [] }, 'The operator ends_with does not work in this filter'],
    [
      { operator: 'flag_evaluates_to', value: [] },
      'The operator flag_evaluates_to does not work in this filter',
    ],
    [{ operator: 'is_date_after', value: '-9999y' }, 'is_date_after operator requires a date'],
    [
      { operator: 'is_date_exact', value: '9999-12-31T23:59:59-12:00' },
      'is_date_exact operator requires a date',
    ],
    [{ operator: 'gt', value: '1e999' }, 'This number is too large'],
  ])('%j is refused, at its place', (filter, message) => {
    const compile = () =>
      filterExpression(readFilters({ type: 'OR', values: [{ key: 'a', ...filter }] }), REALTIME);
    expect(compile).toThrow(message);
    expect(compile).toThrow(expect.objectContaining({ path: 'values.0' }) as never);
  });
});

describe('elements and actions', () => {
  const chain =
    'a.big.red:attr__data-x="1"href="/docs"nth-child="2"nth-of-type="1"text="Go";div.menu:attr_id="top"nth-child="1";body:nth-child="2"';
  const matches = (step: Partial<ActionStep>) => {
    const expr = functionFilterExpression(readFunctionFilters({ actions: [{ id: 1 }] }), {
      ...REALTIME,
      actions: new Map([[1, [{ ...NO_STEP, event: '$autocapture', ...step }]]]),
    });
    const globals = { event: '$autocapture', properties: {}, elements_chain: chain };
    return compileJavaScript(expr).run(globals);
  };

  test.each([
    ['a', true],
    ['.red', true],
    ['a.red.big', true],
    ['a.re', false],
    ['ab', false],
    ['#top a', true],
    ['#top > a', true],
    ['body > a', false],
    ['body a', true],
    ['div.menu', true],
    ['[href="/docs"]', true],
    ['a[data-x="1"]', true],
    ['a[data-x="2"]', false],
    ['a:nth-child(2)', true],
    ['div:nth-child(2)', false],
    ['*', true],
    ['* > a', true],
  ])('the selector %s', (selector, expected) => {
    expect(matches({ selector })).toMatchObject({ result: expected });
  });

  test.each(['', 'a >', 'a:hover', 'a, b', '[href]', '"', 'a[x="\\"]'])(
    'the selector %j is refused',
    (selector) => {
      const filter = readFilters([
        { type: 'element', key: 'selector', value: selector === '' ? ' ' : selector },
      ]);
      expect(() => filterExpression(filter, REALTIME)).toThrow(/selector/);
    },
  );

  test('an event without elements has no element at all', () => {
    const filter = readFilters([{ type: 'element', key: 'selector', value: '*' }]);
    const code = compileJavaScript(filterExpression(filter, REALTIME));
    expect(code.run({ elements_chain: 'div' })).toMatchObject({ result: true });
    expect(code.run({ elements_chain: '' })).toMatchObject({ result: false });
  });

  test('a tag name', () => {
    expect(matches({ tagName: 'div' })).toMatchObject({ result: true });
    expect(matches({ tagName: 'span' })).toMatchObject({ result: false });
  });
});
