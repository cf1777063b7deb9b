// Filter documents and the events they meet, by chance: mostly what people write, often enough what they should not.
import type { Random } from '../hog/support/random.ts';

export const GROUP_KEYS = ['acme', 'umbrella'];

/** Names of properties: `__proto__` and its like are data. */
const KEYS = [
  'plan',
  'price',
  'email',
  'a.b',
  "it's",
  '$browser',
  '__proto__',
  'constructor',
  'toString',
  '"',
  'é',
];

const TEXTS = [
  '',
  'abc',
  'ABC',
  'a.b',
  'null',
  'true',
  'false',
  'pro',
  'x@posthog.com',
  'É',
  'straße',
  '50%',
  'a_b',
];
const ODD_TEXTS = [
  ' ',
  'a\nb',
  'a\\b',
  "it's",
  '😀',
  'İ',
  'ſ',
  'σας',
  '[5]',
  '["abc"]',
  '{"a":1}',
  '\u00a05',
  '\ufeff5',
];
const NUMBERS = [0, 1, 5, -3, 5.5, 100, 1e-7, 1e21, 12345678901234567000, 9007199254740992];
const NUMERIC = ['5', '0', '-3', '5.5', '100', '1e3', '05', '5.0'];
const ODD_NUMERIC = [
  '+5',
  ' 5',
  '0x10',
  'Infinity',
  'inf',
  'NaN',
  '1e999',
  '1e-999',
  '1_000',
  '12345678901234567890',
  '-0',
];
const VERSIONS = [
  '1.2.3',
  'v1.2.3',
  '1.2',
  '1.10.0',
  '1.9.0',
  '1.2.3-beta.1',
  '1.2.3+build.5',
  '2.0.0',
  '0.0.3',
  '1',
  '1.2.3.4',
];
const DATES = [
  '2026-03-15',
  '2026-03-15T12:00:00Z',
  '2026-03-15 12:00',
  '2026-03-08 02:30:00',
  '2026-03-29 02:30:00',
  '2025-10-26 02:30:00',
  '2025-11-02 01:30:00',
  '2026-02-15T12:00:00Z',
  '2026-03-15T12:00:00+05:30',
  '2026-03-15t12:00:00.5-03',
  '1969-12-31T23:59:59Z',
];
const ODD_DATES = [
  '2026-02-30',
  '2026-3-15',
  '2026-03',
  '2026-W11',
  '2026-074',
  '20260315',
  '2026-03-15T24:00:00',
  '2026-03-15T12:00:60Z',
  '2026-03-15T12:00:00.1234567Z',
  '2026-03-15T12:00:00+16:00',
  '9999-12-31T23:59:59-12:00',
  '0000-01-01',
  '0001-01-01',
  ' 2026-03-15 ',
  '\u00a02026-03-15',
  'today',
];
const RELATIVE = ['-7d', '-1m', '-1q', '-1y', '-3h', '-2w', '7d', '-36h', '-31d'];
const PATTERNS = [
  '^a',
  'b$',
  '.',
  '.*',
  '^$',
  '\\d+',
  '\\bb',
  '(?i)É',
  '(?i)pro|ABC',
  '[^a]',
  'a.b',
  '\\.',
  '[[:alpha:]]+\\d?',
  '\\Qa.b\\E',
  'x*',
  '(?m)^b',
  '(?s)a.b',
  '\\x61',
  '',
  '^[\\w.+-]+@[a-z]+',
  '\\\\',
  '[\\]a]',
];

export const TEXT_OPERATORS = [
  'exact',
  'is_not',
  'icontains',
  'not_icontains',
  'icontains_multi',
  'not_icontains_multi',
];
const ORDER_OPERATORS = ['gt', 'gte', 'lt', 'lte', 'min', 'max'];
const RANGE_OPERATORS = ['between', 'not_between'];
const DATE_OPERATORS = ['is_date_exact', 'is_date_before', 'is_date_after'];
const VERSION_OPERATORS = ['semver_eq', 'semver_neq', 'semver_gt', 'semver_gte', 'semver_lt', 'semver_lte'];
const VERSION_RANGES = ['semver_tilde', 'semver_caret', 'semver_wildcard'];

const often = <T>(random: Random, usual: readonly T[], odd: readonly T[]): T =>
  random.pick(random.chance(0.12) ? odd : usual);

const listOr = (random: Random, make: () => unknown): unknown =>
  random.chance(0.25) ? random.list(3, make) : make();

/** An operator and a value that it takes. */
function test(random: Random): { operator: string; value?: unknown } {
  const text = () =>
    random.chance(0.2) ? random.chance(0.5) : often(random, [...TEXTS, ...NUMERIC], ODD_TEXTS);
  const number = () => random.pick([...NUMBERS, ...NUMERIC] as unknown[]);
  const scalar = () => (random.chance(0.3) ? random.pick(NUMBERS) : text());
  switch (random.below(8)) {
    case 0:
      return { operator: random.pick(['is_set', 'is_not_set']), value: random.pick([null, 'is_set', []]) };
    case 1:
      return {
        operator: random.pick(ORDER_OPERATORS),
        value: listOr(random, random.chance(0.9) ? number : text),
      };
    case 2: {
      const ends = [Number(number()), Number(number())].sort((left, right) => left - right);
      return { operator: random.pick(RANGE_OPERATORS), value: random.chance(0.5) ? ends : ends.map(String) };
    }
    case 3: {
      const usual = random.chance(0.4) ? RELATIVE : DATES;
      return { operator: random.pick(DATE_OPERATORS), value: listOr(random, () => random.pick(usual)) };
    }
    case 4:
      return random.chance(0.7)
        ? { operator: random.pick(VERSION_OPERATORS), value: random.pick(VERSIONS) }
        : {
            operator: random.pick(VERSION_RANGES),
            value: random.pick(['1.2.3', '1.2', '0.2.1', '0.0.3-rc.1']),
          };
    case 5:
      return {
        operator: random.pick(['regex', 'not_regex']),
        value: listOr(random, () => random.pick(PATTERNS)),
      };
    case 6:
      return { operator: random.pick(['in', 'not_in', 'exact', 'is_not']), value: random.list(3, scalar) };
    default:
      return { operator: random.pick(TEXT_OPERATORS), value: listOr(random, scalar) };
  }
}

/** A condition: of the event mostly, of its person, group, columns, flags, elements; or HogQL. */
export function condition(random: Random): Record<string, unknown> {
  const key = random.pick(KEYS);
  const rest = { ...test(random), ...(random.chance(0.08) && { negation: true }) };
  switch (random.below(12)) {
    case 0:
    case 1:
      return { key, type: 'person', ...rest };
    case 2:
      return { key, type: 'group', group_type_index: 0, ...rest };
    case 3:
      return { key: random.pick(['distinct_id', 'event']), type: 'event_metadata', ...rest };
    case 4:
      return { key: 'beta', type: 'feature', ...rest };
    case 5:
      return element(random);
    case 6:
      return { key: random.pick(HOGQL), type: 'hogql' };
    default:
      return { key, ...(random.chance(0.5) && { type: 'event' }), ...rest };
  }
}

/** Expressions that give a boolean, whatever the property is. */
export const HOGQL = [
  "event = 'e1' or properties.plan = null",
  'person.properties.email != null',
  "distinct_id in ('d0', 'd1')",
  'not (properties.price = null)',
];

function element(random: Random): Record<string, unknown> {
  const operator = random.pick(['exact', 'is_not']);
  const [key, value] = random.pick([
    ['selector', random.pick(['a', '.big', 'div > a', 'a[data-x="1"]', '#top a', 'a.big.red', '*'])],
    ['tag_name', random.pick(['a', 'div', 'span'])],
    ['href', random.pick(['/docs', '/', ''])],
    ['text', random.pick(['Go', 'Stop', ''])],
  ] as [string, string][]);
  const usual = key === 'href' || key === 'text' ? random.pick([operator, 'icontains', 'regex']) : operator;
  return { type: 'element', key, operator: usual, value: random.chance(0.2) ? [value, 'div'] : value };
}

/** Conditions, in groups within groups. */
export function filters(random: Random, depth = 2): unknown {
  const members = (least: number) =>
    Array.from({ length: least + random.below(3) }, () =>
      depth > 0 && random.chance(0.25) ? filters(random, depth - 1) : condition(random),
    );
  if (random.chance(0.4)) return { type: random.pick(['AND', 'OR']), values: members(0) };
  return members(1);
}

/** All that a function's filters may hold. */
export function document(random: Random): Record<string, unknown> {
  const entry = (type: string, id: unknown) => ({
    id,
    type,
    ...(random.chance(0.4) && { properties: filters(random, 0) }),
  });
  return {
    ...(random.chance(0.3) && {
      events: random.list(2, () => entry('events', random.pick(['e0', 'e1', 'e2', null]))),
    }),
    ...(random.chance(0.2) && { actions: random.list(2, () => entry('actions', random.pick([1, '2', 9]))) }),
    properties: filters(random),
    filter_test_accounts: random.chance(0.2),
  };
}

export function propertyValue(random: Random): unknown {
  switch (random.below(10)) {
    case 0:
      return null;
    case 1:
      return random.chance(0.5);
    case 2:
    case 3:
      return random.pick(NUMBERS);
    case 4:
      return often(random, NUMERIC, ODD_NUMERIC);
    case 5:
      return often(random, DATES, ODD_DATES);
    case 6:
      return random.pick(VERSIONS);
    case 7:
      return random.chance(0.5)
        ? random.pick([
            [],
            [5],
            ['abc'],
            ['5', 'x'],
            [1.5, null],
            {},
            { a: 1 },
            { a: 'abc', b: [true] },
            ['1.2.3'],
          ])
        : random.pick(TEXTS);
    default:
      return often(random, TEXTS, ODD_TEXTS);
  }
}

/** As JSON would bring them: `__proto__` is a key of their own. */
export function properties(random: Random): Record<string, unknown> {
  const entries = KEYS.filter(() => random.chance(0.8)).map((key) => [key, propertyValue(random)]);
  return JSON.parse(
    `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`,
  );
}

const CHAINS: [chain: string, href: string, texts: string[]][] = [
  ['', '', []],
  [
    'a.big.red:attr__data-x="1"href="/docs"nth-child="2"nth-of-type="1"text="Go";div.menu:attr_id="top"nth-child="1"',
    '/docs',
    ['Go'],
  ],
  ['div:text="Stop";a.big:href="/"text="Go now";body:nth-child="2"', '/', ['Stop', 'Go now']],
];

export interface GeneratedEvent {
  event: string;
  distinct_id: string;
  properties: Record<string, unknown>;
  person_properties: Record<string, unknown> | null;
  group_0: string | null;
  elements_chain: string;
  elements_chain_href: string;
  elements_chain_texts: string[];
}

/** Of a group: stored as `jsonb`, which has its own way of writing 1e21. */
export function groupProperties(random: Random): Record<string, unknown> {
  return JSON.parse(
    JSON.stringify(properties(random), (_key, value) =>
      typeof value === 'number' && /e/.test(`${value}`) ? 5 : value,
    ),
  );
}

export function event(random: Random): GeneratedEvent {
  const [chain, href, texts] = random.pick(CHAINS);
  const own = properties(random);
  if (random.chance(0.6)) own['$feature/beta'] = random.pick([true, false, 'test', 'control', 5]);
  return {
    event: `e${random.below(4)}`,
    distinct_id: `d${random.below(3)}`,
    properties: own,
    person_properties: random.chance(0.85) ? properties(random) : null,
    group_0: random.chance(0.7) ? random.pick(GROUP_KEYS) : null,
    elements_chain: chain,
    elements_chain_href: href,
    elements_chain_texts: texts,
  };
}
