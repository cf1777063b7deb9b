// Random definitions and users for the comparison with the SDKs. The same seed gives the same ones.
import { checkFilters } from '../../../flags/validation/filters.ts';
import { parseExactJson } from '../../../values/exact-json.ts';

export type Roll = (most: number) => number;
type Fields = Record<string, unknown>;

/** Numbers that look random and are the same each time. */
export function dice(seed: number): Roll {
  let state = seed;
  return (most) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
}

export interface RandomUser {
  distinctId: string;
  deviceId: string;
  groups: Record<string, string>;
  personProperties: Fields;
  groupProperties: Record<string, Fields>;
}

/** The types of groups of the project, by index. */
export const GROUP_TYPES = ['company', 'team'] as const;

/** The names of properties, with the values that users have. */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  email: ['ann@acme.com', 'BOB@Example.com', 'zoë@acme.org', '', 'ann@acme.com\n', 'İstanbul@acme.com'],
  plan: ['free', 'pro', 'Pro', 'enterprise', 'true', 'False', null, 'null'],
  age: [17, 18, '18', 42.5, '42', '1e3', '0x10', ' 7', '12abc', '', -3, 'many', '+5', 'inf', '1,000'],
  beta: [true, false, 'true', 'TRUE', 'false', 1, 0, null, 'yes', [], [true], ['true', 'x']],
  tags: [['a', 'b'], [], ['A'], { a: 1.5 }, 'a', null],
  version: [
    '1.2.3',
    '1.10.0',
    '2.0.0',
    '2.0.0-alpha',
    '1.2.4-rc.1',
    'v1.2.4',
    '1.2',
    '3',
    '01.2.3',
    '1.2.3-beta.1',
    '1.2.3+7',
    '1.2.3.4',
    'x.y',
    2,
  ],
  signed_up: [
    ...[
      '2026-01-31',
      '2026-06-15T12:00:00Z',
      '2024-02-29 10:00:00',
      '2026-11-01T00:00:00+02:00',
      '1999-12-31T23:59:59.999Z',
    ],
    ...['-3d', 'soon', '2026-13-01', 1_770_000_000, '1770000000', 1_700_000_000.5, '2027-01-01T00:00:00'],
  ],
  name: ['Ann', 'ann ', 'ÄNN', 'ann\r', 'o’neil', 'a.b', 'a b', '1'],
  distinct_id: ['somebody-else'],
};

const GROUP_VALUES: Readonly<Record<string, readonly unknown[]>> = {
  industry: ['tech', 'Tech', 'farming', null, 'true'],
  size: [1, 50, '50', 1000, 'huge', '1e2'],
  version: VALUES.version as unknown[],
};

const NAMES = Object.keys(VALUES);
const RELATIVE = ['-1d', '30d', '-6h', '-2w', '-1m', '-18m', '-1y', '-9999d', '-400d'];
const PATTERNS = [
  ...[
    '^ann',
    'com$',
    'b+',
    '[a-z]+@[a-z]+',
    '^$',
    '(?i)BOB',
    '\\d{2,}',
    'a|b',
    '^[^@]+$',
    '\\w+',
    'e$',
    '.+',
    '',
  ],
  ...[
    '(?:pro|free)$',
    '\\bann\\b',
    '[[:alpha:]]+',
    '^\\S+$',
    '\\.',
    'x*',
    '^(free|pro|enterprise)$',
    '\\x41',
  ],
];

class Maker {
  readonly #roll: Roll;
  constructor(roll: Roll) {
    this.#roll = roll;
  }

  one<T>(list: readonly T[]): T {
    return list[this.#roll(list.length)] as T;
  }

  chance(of: number): boolean {
    return this.#roll(of) === 0;
  }

  /** What a filter is compared with: mostly something that users have. */
  #value(pool: readonly unknown[]): unknown {
    const value = this.one(this.chance(6) ? Object.values(VALUES).flat() : pool);
    return value === null || value === '' || (typeof value === 'object' && !Array.isArray(value))
      ? 'acme'
      : value;
  }

  /** A filter on a property, of a person or of a group. */
  property(
    names: readonly string[],
    pools: Readonly<Record<string, readonly unknown[]>>,
    more: Fields,
  ): Fields {
    const key = this.one(names);
    const pool = pools[key] as readonly unknown[];
    const value = this.#value(pool);
    const scalar = Array.isArray(value) ? 'a' : value;
    const text = String(scalar);
    const filter = (operator: string | undefined, wanted: unknown) => ({
      ...{ key, value: wanted },
      ...(operator === undefined ? {} : { operator }),
      ...more,
    });
    const kind = this.#roll(9);
    const list = Array.from({ length: this.#roll(4) }, () => this.#value(pool)).filter(
      (one) => !Array.isArray(one),
    );
    if (kind <= 1) {
      const operator = this.one(['exact', 'exact', 'is_not', undefined]);
      return filter(operator, this.chance(2) ? list : scalar);
    }
    if (kind === 2) return filter(this.one(['is_set', 'is_not_set']), 'is_set');
    if (kind === 3) {
      const operator = this.one([
        'icontains',
        'not_icontains',
        'starts_with',
        'not_starts_with',
        'ends_with',
        'not_ends_with',
      ]);
      const from = this.#roll(Math.max(1, text.length));
      const part = text.slice(from, from + 1 + this.#roll(4)) || text;
      return filter(operator, this.chance(2) ? part : part.toUpperCase());
    }
    if (kind === 4) return filter(this.one(['regex', 'not_regex']), this.one(PATTERNS));
    if (kind === 5)
      return filter(
        this.one(['gt', 'gte', 'lt', 'lte', 'min', 'max']),
        this.one([17, '18', 42.5, '1e2', '0', -3, text]),
      );
    if (kind === 6) {
      const operator = this.one(['is_date_before', 'is_date_after', 'is_date_exact']);
      return filter(operator, this.chance(2) ? this.one(RELATIVE) : this.one(VALUES.signed_up as string[]));
    }
    if (kind === 7) {
      const operator = this.one(['eq', 'neq', 'gt', 'gte', 'lt', 'lte', 'tilde', 'caret', 'wildcard']);
      const versions = ['1.2.3', '1.2.0', '1.10', 'v1.2.3', '2', '0.3.1', '0.0.2', '1.2.3-beta.2', '01.2.3'];
      const wildcards = ['1.*', '1.2.*', '2.*', 'v1.*'];
      return filter(`semver_${operator}`, this.one(operator === 'wildcard' ? wildcards : versions));
    }
    return filter(this.one(['icontains_multi', 'not_icontains_multi']), [text, 'zzz']);
  }

  /** A tree of conditions of a cohort. */
  cohort(known: readonly number[]): Fields {
    const leaf = (): Fields => {
      if (known.length > 0 && this.chance(5)) {
        return {
          ...{ key: 'id', type: 'cohort', value: this.one(known) },
          ...(this.chance(3) ? { negation: true } : {}),
          ...(this.chance(4) ? { operator: this.one(['in', 'not_in', 'exact']) } : {}),
        };
      }
      return this.property(NAMES, VALUES, { type: 'person', ...(this.chance(4) ? { negation: true } : {}) });
    };
    const branch = (): Fields => ({
      type: this.one(['AND', 'OR', 'property']),
      values: Array.from({ length: 1 + this.#roll(3) }, leaf),
    });
    return { type: this.one(['AND', 'OR']), values: Array.from({ length: 1 + this.#roll(3) }, branch) };
  }
}

const VARIANTS = [
  [50, 30, 20],
  [100, 0, 0],
  [33.33, 33.33, 33.34],
  [0, 10, 90],
].map((shares) => ({
  variants: ['control', 'test', 'test2'].map((key, index) => ({ key, rollout_percentage: shares[index] })),
}));

export interface RandomFlag {
  id: number;
  key: string;
  filters: Fields;
  bucketing: 'distinct_id' | 'device_id';
  isActive: boolean;
}

export interface RandomCohort {
  id: number;
  properties: Fields;
}

/** Random cohorts. Each names only those before it. */
export function randomCohorts(roll: Roll, count: number): RandomCohort[] {
  const maker = new Maker(roll);
  const ids: number[] = [];
  return Array.from({ length: count }, (_, index) => {
    const id = 100 + index;
    const properties = maker.cohort(ids);
    ids.push(id);
    return { id, properties };
  });
}

/** Random flags, each of which the API would store. */
export function randomFlags(roll: Roll, count: number, cohorts: readonly RandomCohort[]): RandomFlag[] {
  const maker = new Maker(roll);
  const flags: RandomFlag[] = [];
  while (flags.length < count) {
    const id = flags.length + 1;
    const flag = draft(maker, roll, id, flags, cohorts);
    try {
      const { filters } = checkFilters(parseExactJson(JSON.stringify(flag.filters)), {
        isNew: true,
        isRemoteConfiguration: false,
      });
      flags.push({ ...flag, filters: JSON.parse(JSON.stringify(filters)) });
    } catch {
      // The API refuses it, so it cannot exist.
    }
  }
  return flags;
}

function draft(
  maker: Maker,
  roll: Roll,
  id: number,
  before: readonly RandomFlag[],
  cohorts: readonly RandomCohort[],
): RandomFlag {
  const about = maker.one(['persons', 'persons', 'persons', 'group', 'mixed'] as const);
  const groupIndex = roll(GROUP_TYPES.length);
  const multivariate = maker.chance(2) ? maker.one(VARIANTS) : null;
  const personFilter = (): Fields => {
    if (cohorts.length > 0 && maker.chance(6)) {
      return {
        key: 'id',
        type: 'cohort',
        value: maker.one(cohorts).id,
        operator: maker.one(['in', 'not_in']),
      };
    }
    if (before.length > 0 && maker.chance(8)) {
      const value = maker.one([true, true, false, 'test', 'control']);
      return { key: String(maker.one(before).id), type: 'flag', operator: 'flag_evaluates_to', value };
    }
    return maker.property(NAMES, VALUES, { type: 'person' });
  };
  const names = Object.keys(GROUP_VALUES);
  const groups = Array.from({ length: 1 + roll(3) }, (_, index) => {
    const ofGroup = about === 'group' || (about === 'mixed' && index % 2 === 1);
    const filter = () =>
      ofGroup
        ? maker.property(names, GROUP_VALUES, { type: 'group', group_type_index: groupIndex })
        : personFilter();
    return {
      properties: Array.from({ length: roll(4) === 0 ? 0 : 1 + roll(2) }, filter),
      rollout_percentage: maker.one([100, 100, 100, 50, 33.3, 1, 0, null]),
      variant: multivariate && maker.chance(3) ? maker.one(['control', 'test', 'test2']) : null,
      ...(ofGroup ? { aggregation_group_type_index: groupIndex } : {}),
    };
  });
  return {
    id,
    key: `random-${id}`,
    filters: {
      groups,
      multivariate,
      payloads: multivariate ? { test: '{"a":[1]}' } : { true: '"on"' },
      ...(maker.chance(10)
        ? { holdout: { id: 1 + roll(3), exclusion_percentage: maker.one([0, 10, 50, 100]) } }
        : {}),
      ...(maker.chance(8) ? { early_exit: true } : {}),
      ...(maker.chance(20) && about === 'persons' ? { feature_enrollment: true } : {}),
    },
    bucketing: maker.chance(10) && about === 'persons' ? 'device_id' : 'distinct_id',
    isActive: !maker.chance(20),
  };
}

/** A random user. Most properties are there; some are missing. */
export function randomUser(roll: Roll, number: number): RandomUser {
  const maker = new Maker(roll);
  const some = (pools: Readonly<Record<string, readonly unknown[]>>, names: readonly string[]): Fields =>
    Object.fromEntries(
      names.flatMap((name) => (maker.chance(8) ? [] : [[name, maker.one(pools[name] as unknown[])]])),
    );
  const personProperties = some(
    VALUES,
    NAMES.filter((name) => name !== 'distinct_id' || maker.chance(10)),
  );
  if (maker.chance(4)) {
    const flag = `random-${1 + roll(300)}`;
    personProperties[`$feature_enrollment/${flag}`] = maker.one([true, false, 'true', 'no']);
  }
  const groups: Record<string, string> = {};
  const groupProperties: Record<string, Fields> = {};
  for (const type of GROUP_TYPES) {
    if (maker.chance(3)) continue;
    groups[type] = `${type}-${roll(50)}`;
    groupProperties[type] = some(GROUP_VALUES, Object.keys(GROUP_VALUES));
  }
  return {
    distinctId: maker.one([
      `user-${number}`,
      `üser-${number}`,
      String(number),
      `${'long-'.repeat(15)}${number}`,
    ]),
    deviceId: maker.chance(3) ? '' : `device-${roll(1000)}`,
    ...{ groups, personProperties, groupProperties },
  };
}

/** Random filters on properties of persons, each another one, that the API would store. */
export function randomFilters(roll: Roll, count: number): Fields[] {
  const filters = new Map<string, Fields>();
  for (let drawn = 0; filters.size < count && drawn < 20 * count; drawn += 20) {
    for (const flag of randomFlags(roll, 20, [])) {
      for (const group of flag.filters.groups as { properties: Fields[] }[]) {
        for (const one of group.properties) {
          if (one.type === 'person') filters.set(JSON.stringify([one.operator, one.value]), one);
        }
      }
    }
  }
  return [...filters.values()].slice(0, count);
}

/** Each value that users have. */
export function allValues(): unknown[] {
  const values = [...Object.values(VALUES), ...Object.values(GROUP_VALUES)].flat();
  return [...new Map(values.map((one) => [JSON.stringify(one), one])).values()];
}
