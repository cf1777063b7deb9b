// Puts every kind of wrong value into every field that the OpenAPI document names for functions, actions and integrations.
import { beforeAll, describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../support/api.ts';
import { rounds } from '../support/rounds.ts';
import { documentOf } from '../support/routes.ts';

const api = apiForFile();
let anna: Tenant;
let functionId: string;

interface Schema {
  $ref?: string;
  type?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
}

const deep = () => {
  let value: unknown = 1;
  for (let n = 0; n < 2_000; n += 1) value = [value];
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
    '{event',
    "{'",
    '{inputs.a}',
    '%',
    '%00',
    '../..',
    'x'.repeat(5_000),
  ],
  ...[
    '0000-01-01',
    '9999-12-31T23:59:59Z',
    '-99999d',
    '-0d',
    'NaN',
    '1e999',
    '018f0000-0000-7000-8000-00000000',
  ],
  ...[[], [[]], [null], [1, 'a', {}], {}, { a: null }, { a: { b: [] } }, { constructor: 1, toString: 2 }],
  ...[
    { key: 'a' },
    { value: null },
    { value: {} },
    { secret: true },
    { bytecode: ['_H', 1, 29] },
    ['_H', 1, 29],
  ],
  JSON.parse('{"__proto__":{"value":1},"hasOwnProperty":{"value":"{1}"}}'),
];

const hog = { hog: 'return 1' };
const input = { key: 'a', type: 'string' };
const mapping = { name: 'm', inputs_schema: [input], inputs: { a: { value: 'b' } }, filters: {} };
const complete = {
  ...{ ...hog, type: 'destination', name: 'f', description: 'd', enabled: false, icon_url: null },
  ...{ inputs_schema: [input], inputs: { a: { value: '{event.event}' } }, filters: {}, mappings: [mapping] },
  masking: { ttl: 60, hash: '{event.event}' },
};
const event = { event: 'e', distinct_id: 'd', properties: {} };

/** Bodies that are right, by their operation. `:id` is a function. */
const OPERATIONS: [method: 'POST' | 'PUT' | 'PATCH', path: string, body: Record<string, unknown>][] = [
  ['POST', 'hog_functions/', complete],
  ['PUT', 'hog_functions/{id}/', complete],
  ['PATCH', 'hog_functions/{id}/', complete],
  ['POST', 'hog_functions/{id}/check/', complete],
  ['POST', 'hog_functions/{id}/invocations/', { configuration: complete, globals: { event } }],
  ['POST', 'hog_functions/{id}/preview/', { configuration: complete, max_events: 5, sample: 1 }],
  ['POST', 'hog_functions/{id}/publish/', {}],
  ['PATCH', 'hog_functions/rearrange/', { orders: {} }],
  ['POST', 'actions/', { name: 'a', steps: [{ event: 'e', properties: [] }] }],
  ['POST', 'integrations/', { kind: 'bearer', config: { access_token: 't', hosts: ['a.example'] } }],
];

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  const made = await api.request(anna, 'POST', `/api/projects/${anna.projectId}/hog_functions/`, complete);
  expect(made.statusCode).toBe(201);
  functionId = made.json().id;
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

/** The body with another value at a path. */
function replaced(body: unknown, [first, ...rest]: readonly string[], value: unknown): unknown {
  if (first === undefined) return value;
  const given = typeof body === 'object' && body !== null ? body : {};
  if (Array.isArray(given)) return [replaced(given[0], rest, value)];
  const own = (given as Record<string, unknown>)[first];
  return { ...given, [first]: replaced(own, rest, value) };
}

describe('a wrong value in any field', () => {
  test.each(OPERATIONS)(
    'is no fault of the server: %s %s',
    async (method, path, body) => {
      const document = documentOf(api.app).paths[`/api/projects/{project_id}/${path}`];
      const described = document?.[method.toLowerCase()]?.requestBody as {
        content: Record<string, { schema: Schema }>;
      };
      const named = fieldsOf(described.content['application/json']?.schema).map((one) => one.join('\n'));
      const fields = [...new Set(named)].map((one) => one.split('\n'));
      expect(fields.length).toBeGreaterThan(0);
      const url = `/api/projects/${anna.projectId}/${path.replace('{id}', functionId)}`;
      const faults: unknown[] = [];
      let sent = 0;
      for (const [index, field] of fields.entries()) {
        // More values at the first level than below. Each value comes to each level.
        const every = field.length === 1 ? rounds(2, 1) : rounds(9, 3);
        const values = VALUES.filter((_, n) => (n + index) % every === 0);
        for (const value of values) {
          const answer = await api.request(anna, method, url, replaced(body, field, value) as object);
          sent += 1;
          const said = answer.statusCode >= 400 ? answer.json() : {};
          const isClear = answer.statusCode < 400 || typeof (said.detail ?? said.attr) === 'string';
          if (answer.statusCode >= 500 || !isClear) faults.push([field, value, answer.statusCode, said]);
        }
      }
      expect(faults).toEqual([]);
      expect(sent).toBeGreaterThanOrEqual(VALUES.length / 4);
    },
    120_000,
  );

  test('of any depth is refused', async () => {
    for (const field of ['inputs', 'filters', 'masking', 'mappings', 'inputs_schema']) {
      const value = field === 'inputs' ? { a: { value: deep() } } : deep();
      const answer = await api.request(
        anna,
        'POST',
        `/api/projects/${anna.projectId}/hog_functions/check/check/`,
        {
          ...complete,
          [field]: value,
        },
      );
      expect(answer.statusCode).toBeLessThan(500);
    }
  });
});

test('thousands of inputs are refused at once', async () => {
  const inputs_schema = Array.from({ length: 4_000 }, (_, n) => ({ key: `k${n}`, type: 'string' }));
  const answer = await api.request(anna, 'POST', `/api/projects/${anna.projectId}/hog_functions/`, {
    ...{ ...hog, inputs_schema },
    inputs: Object.fromEntries(inputs_schema.map(({ key }) => [key, { value: `{inputs.${key}}` }])),
  });
  expect([answer.statusCode, answer.json().attr]).toEqual([400, 'inputs_schema']);
});
