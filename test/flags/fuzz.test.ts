// Every kind of wrong value in every field that the OpenAPI document names for flags and cohorts, and hostile filters.
import { beforeAll, describe, expect, test } from '@jest/globals';
import { uuidv7 } from '../../db/uuid.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { rounds } from '../support/rounds.ts';
import { documentOf } from '../support/routes.ts';
import { EVERYBODY, where } from './support.ts';

const api = apiForFile();
let anna: Tenant;
let flagId: number;
let cohortId: number;
let staticId: number;

interface Schema {
  $ref?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
}

const deep = (levels: number) => {
  let value: unknown = 1;
  for (let n = 0; n < levels; n += 1) value = [value];
  return value;
};
/** Values that are wrong nearly everywhere. */
const VALUES: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e308, 2 ** 31, 2 ** 53, -0],
  ...[
    '',
    ' ',
    '\0',
    'a\0b',
    '\ud800',
    '😀',
    '{',
    '%',
    '%00',
    '../..',
    'x'.repeat(5_000),
    '(',
    '[',
    '\\',
    '-99999d',
  ],
  ...['0000-01-01', '9999-12-31T23:59:59Z', 'NaN', '1e999', '018f0000-0000-7000-8000-00000000'],
  ...[[], [[]], [null], [1, 'a', {}], {}, { a: null }, { a: { b: [] } }, { constructor: 1, toString: 2 }],
  ...[{ groups: null }, { groups: [null] }, { groups: [{ properties: [null] }] }, { groups: { length: 5 } }],
  ...[
    { properties: null },
    { properties: { type: 'AND', values: [[]] } },
    { properties: { type: 'x', values: [] } },
  ],
  ...[
    { payloads: [] },
    { payloads: { true: {} } },
    { multivariate: [] },
    { multivariate: { variants: [null] } },
  ],
  ...[where({ type: 'flag', key: 1e10 }), where({ type: 'cohort', key: 'id', value: {} }), { holdout: [] }],
  deep(150),
  JSON.parse('{"__proto__":{"groups":1},"hasOwnProperty":{"value":"{1}"}}'),
];

const property = { key: 'a', type: 'person', operator: 'exact', value: 'b' };
const complete = {
  ...{ key: 'fuzz', name: 'n', active: true, archived: false, filters: where(property), tags: ['a'] },
  ...{ ensure_experience_continuity: false, evaluation_runtime: 'all', bucketing_identifier: 'distinct_id' },
};
const cohort = { name: 'c', description: 'd', filters: { properties: { type: 'AND', values: [property] } } };
type Method = 'POST' | 'PUT' | 'PATCH';

/** Bodies that are right, by their operation. */
const OPERATIONS: [method: Method, path: string, body: Record<string, unknown>][] = [
  ['POST', 'feature_flags/', complete],
  ['PUT', 'feature_flags/{id}/', complete],
  ['PATCH', 'feature_flags/{id}/', { ...complete, version: 1, original_flag: {} }],
  ['POST', 'feature_flags/{id}/test/', { ...complete, max_distinct_ids: 1, sample: 1 }],
  [
    'POST',
    'feature_flags/{id}/explain/',
    { distinct_id: 'a', groups: {}, person_properties: {}, group_properties: {} },
  ],
  ['POST', 'feature_flags/{id}/roll_back/', { version: 1 }],
  ['POST', 'feature_flags/{id}/overrides/', { distinct_id: 'a', value: true }],
  ['POST', 'feature_flags/{id}/overrides/remove/', { distinct_id: 'a' }],
  ['POST', 'feature_flags/bulk_keys/', { ids: [1] }],
  ['POST', 'cohorts/', cohort],
  ['PUT', 'cohorts/{cohort}/', cohort],
  ['PATCH', 'cohorts/{cohort}/', cohort],
  ['POST', 'cohorts/{static}/add_persons_to_static_cohort/', { person_ids: [], distinct_ids: ['a'] }],
  [
    'PATCH',
    'cohorts/{static}/remove_person_from_static_cohort/',
    { person_id: '018f0000-0000-7000-8000-000000000000' },
  ],
];

const project = (rest: string) => `/api/projects/${anna.projectId}/${rest}`;
const made = async (path: string, body: object) => {
  const answer = await api.request(anna, 'POST', project(path), body);
  expect([answer.statusCode, answer.body]).toEqual([201, expect.any(String)]);
  return answer.json().id as number;
};

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  flagId = await made('feature_flags/', { ...complete, key: 'stored' });
  cohortId = await made('cohorts/', cohort);
  staticId = await made('cohorts/', { name: 's', is_static: true });
});

/** The fields of a schema, with those of the objects in it, two levels deep. */
function fieldsOf(schema: Schema | undefined, depth = 0): string[][] {
  const { schemas } = documentOf(api.app).components as { schemas: Record<string, Schema> };
  const found = schema?.$ref ? schemas[schema.$ref.split('/').at(-1) as string] : schema;
  if (!found || depth > 2) return [];
  const inner = [...(found.anyOf ?? []), ...(found.oneOf ?? [])].flatMap((one) => fieldsOf(one, depth));
  const own = Object.entries(found.properties ?? {}).flatMap(([name, field]) => [
    [name],
    ...fieldsOf(field, depth + 1).map((path) => [name, ...path]),
  ]);
  return [...inner, ...own, ...fieldsOf(found.items, depth + 1).map((path) => ['0', ...path])];
}

/** Places in filters, which the document leaves open. */
const IN_FILTERS: string[][] = [
  ...[
    'groups',
    'multivariate',
    'payloads',
    'holdout',
    'aggregation_group_type_index',
    'feature_enrollment',
    'early_exit',
  ],
].map((name) => ['filters', name]);
const IN_GROUP = [
  ...['properties', 'rollout_percentage', 'variant', 'aggregation_group_type_index'].map((name) => [name]),
  ...['key', 'type', 'operator', 'value', 'group_type_index', 'negation'].map((name) => [
    'properties',
    '0',
    name,
  ]),
].map((path) => ['filters', 'groups', '0', ...path]);
const IN_COHORT = [
  ['filters', 'properties', 'type'],
  ['filters', 'properties', 'values'],
  ...['key', 'type', 'operator', 'value', 'negation'].map((name) => [
    'filters',
    'properties',
    'values',
    '0',
    name,
  ]),
];

/** The body with another value at a path. */
function replaced(body: unknown, [first, ...rest]: readonly string[], value: unknown): unknown {
  if (first === undefined) return value;
  const given = typeof body === 'object' && body !== null ? body : {};
  if (Array.isArray(given)) return [replaced(given[0], rest, value)];
  const own = (given as Record<string, unknown>)[first];
  return { ...given, [first]: replaced(own, rest, value) };
}

describe('a wrong value in any field', () => {
  test.each(OPERATIONS)('is no fault of the server: %s %s', async (method, path, body) => {
    const named = path.replace('{cohort}', '{id}').replace('{static}', '{id}');
    const document = documentOf(api.app).paths[`/api/projects/{project_id}/${named}`];
    const described = document?.[method.toLowerCase()]?.requestBody as {
      content: Record<string, { schema: Schema }>;
    };
    const fields = fieldsOf(described.content['application/json']?.schema);
    expect(fields.length).toBeGreaterThan(0);
    if ('filters' in body)
      fields.push(...(path.startsWith('cohorts') ? IN_COHORT : [...IN_FILTERS, ...IN_GROUP]));
    const unique = [...new Set(fields.map((one) => one.join('\n')))].map((one) => one.split('\n'));
    const url = project(
      path
        .replace('{id}', String(flagId))
        .replace('{cohort}', String(cohortId))
        .replace('{static}', String(staticId)),
    );
    const faults: unknown[] = [];
    let sent = 0;
    // Trials cost a thread each, so they get fewer values.
    const every = path.endsWith('/test/') ? rounds(18, 9) : unique.length > 10 ? rounds(12, 4) : 4;
    for (const [index, field] of unique.entries()) {
      for (const value of VALUES.filter((_, n) => (n + index) % every === 0)) {
        const answer = await api.request(anna, method, url, replaced(body, field, value) as object);
        sent += 1;
        const said = answer.statusCode >= 400 ? answer.json() : {};
        const isClear =
          answer.statusCode < 400 || (typeof said.detail === 'string' && said.detail.length > 5);
        if (answer.statusCode >= 500 || !isClear) faults.push([field, value, answer.statusCode, said]);
      }
    }
    expect(faults).toEqual([]);
    expect(sent).toBeGreaterThan(5);
    // What was stored can be read, and evaluated.
    for (const rest of [
      'feature_flags/?limit=1000',
      'cohorts/?limit=1000',
      'feature_flags/local_evaluation/',
    ]) {
      expect([rest, (await api.request(anna, 'GET', project(rest))).statusCode]).toEqual([rest, 200]);
    }
    const told = await api.request(null, 'POST', '/flags?v=2', {
      token: anna.projectToken,
      distinct_id: 'a',
    });
    expect(told.statusCode).toBe(200);
  });

  test.each([
    'feature_flags/?search=',
    'feature_flags/?order=',
    'feature_flags/?tags=',
    'feature_flags/?created_by_id=',
    'feature_flags/matching_ids/?excluded_properties=',
    'feature_flags/activity/?page=',
    'feature_flags/evaluation_reasons/?distinct_id=a&groups=',
    'feature_flags/my_flags/?groups=',
    'feature_flags/x/remote_config/?token=',
    'cohorts/?search=',
    'feature_flags/?limit=1&offset=',
  ])('of a query is no fault of the server: %s', async (path) => {
    for (const value of VALUES) {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      const answer = await api.request(
        anna,
        'GET',
        project(`${path}${encodeURIComponent(text.toWellFormed())}`),
      );
      expect([text, answer.statusCode < 500]).toEqual([text, true]);
    }
  });

  test.each(['0', '-1', '1e9', '99999999999999999999', 'x', '%00', '%F0%9F%98%80', "1'", '2147483648'])(
    'of a path is no fault of the server: %s',
    async (id) => {
      for (const rest of ['', 'history/', 'activity/', 'status/', 'remote_config/', 'dependent_flags/']) {
        const answer = await api.request(anna, 'GET', project(`feature_flags/${id}/${rest}`));
        expect([id, rest, answer.statusCode >= 400 && answer.statusCode < 500]).toEqual([id, rest, true]);
      }
    },
  );
});

describe('hostile filters', () => {
  const reason = async (filters: unknown, path = 'feature_flags/', more: object = { key: 'hostile' }) => {
    const answer = await api.request(anna, 'POST', project(path), { ...more, filters });
    return [answer.statusCode, answer.json().detail] as [number, string];
  };

  test('with more than is allowed are refused, with the number', async () => {
    const group = { properties: [], rollout_percentage: 1 };
    const many = (count: number) => ({ groups: Array.from({ length: count }, () => group) });
    expect(await reason(many(1_001))).toEqual([400, 'groups has 1001 entries; at most 1000 are allowed.']);
    const [status, detail] = await reason(many(10_000));
    expect([status, detail]).toEqual([400, expect.stringMatching(/10000 entries|more than \d+ values/)]);
    expect((await reason({ groups: [{ properties: deep(300) }] }))[0]).toBe(400);
    const wide = where(...Array.from({ length: 1_001 }, (_, n) => ({ ...property, key: `k${n}` })));
    expect((await reason(wide))[1]).toMatch(/at most|more than/i);
    const patterns = where(
      ...Array.from({ length: 900 }, () => ({
        ...property,
        operator: 'regex',
        value: '(a+)+b{1,50}'.repeat(20),
      })),
    );
    const [code, said] = await reason(patterns);
    expect([code, said.length > 10]).toEqual([400, true]);
  });

  test('of a thousand condition sets are stored and evaluated', async () => {
    const groups = Array.from({ length: 1_000 }, (_, n) => ({
      properties: [{ ...property, value: `v${n}` }],
      rollout_percentage: 100,
    }));
    await made('feature_flags/', { key: 'thousand', filters: { groups } });
    const until = async (): Promise<{ reason: { condition_index: number } } | undefined> => {
      const body = {
        token: anna.projectToken,
        distinct_id: 'a',
        person_properties: { a: 'v999' },
        flag_keys: ['thousand'],
      };
      return (await api.request(null, 'POST', '/flags?v=2', body)).json().flags.thousand;
    };
    const told = await eventually(until);
    expect(told?.reason.condition_index).toBe(999);
  });

  test('of cohorts that are nested fifty deep are stored and decided, and circles are refused', async () => {
    let inner = await made('cohorts/', { ...cohort, name: 'innermost' });
    const first = inner;
    const asks = (id: number) => ({
      properties: { type: 'AND', values: [{ key: 'id', type: 'cohort', value: id }] },
    });
    for (let n = 0; n < 50; n += 1)
      inner = await made('cohorts/', { name: `level ${n}`, filters: asks(inner) });
    const id = await made('feature_flags/', {
      key: 'nested',
      filters: where({ key: 'id', type: 'cohort', value: inner }),
    });
    const explained = await api.request(anna, 'POST', project(`feature_flags/${id}/explain/`), {
      distinct_id: 'a',
      person_properties: { a: 'b' },
    });
    expect(explained.json().value).toBe(true);
    const circle = await api.request(anna, 'PATCH', project(`cohorts/${first}/`), { filters: asks(inner) });
    expect([circle.statusCode, circle.json().detail]).toEqual([
      400,
      'Cohorts cannot reference other cohorts in a loop.',
    ]);
  });

  test('meet a person with a megabyte of properties', async () => {
    const id = await made('feature_flags/', {
      key: 'large',
      filters: where({ ...property, operator: 'icontains', value: 'needle' }),
    });
    await api.pool.query(
      `with p as (
         insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
         values ($1, $2, now(), true, $3, 1, now()) returning id)
       insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at)
       select $1, 'large', id, 1, now() from p`,
      [anna.projectId, uuidv7(), { a: `${'x'.repeat(1_000_000)}needle`, other: 'y' }],
    );
    const explained = await api.request(anna, 'POST', project(`feature_flags/${id}/explain/`), {
      distinct_id: 'large',
    });
    expect([explained.statusCode, explained.json().failed, explained.json().value]).toEqual([
      200,
      false,
      true,
    ]);
    const tried = await api.request(anna, 'POST', project(`feature_flags/${id}/test/`), {});
    expect([tried.statusCode, tried.json().searched.too_large]).toEqual([200, 1]);
  });

  test('of a flag stay apart from those of another project', async () => {
    const bert = await api.createTenant('Bert');
    const answer = await api.request(null, 'POST', '/flags?v=2', {
      token: bert.projectToken,
      distinct_id: 'a',
    });
    expect(answer.json().flags).toEqual({});
    expect(EVERYBODY.groups).toHaveLength(1);
  });
});
