// Harm by what a user may write: patterns, filters and queries.
import type { Ask } from './http.ts';
import type { Means } from './misbehave.ts';
import type { Tenant } from './tenants.ts';

let serial = 0;
/** A text that nobody has sent before, so that no answer is remembered. */
function fresh(): string {
  serial += 1;
  return `f${process.pid}_${serial}`;
}
const times = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));

const post = ({ key }: Tenant, method: 'POST' | 'PATCH', path: string, body: object): Ask => ({
  ...{ method, path, body: JSON.stringify(body) },
  headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
});
const get = ({ key }: Tenant, path: string): Ask => ({ path, headers: { authorization: `Bearer ${key}` } });
const project = ({ projectId }: Tenant) => `/api/projects/${projectId}`;

const preview = (tenant: Tenant, what: object): Ask =>
  post(tenant, 'POST', `${project(tenant)}/batch_exports/preview/`, {
    ...{ name: 'Preview', interval: 'hour', destination: { type: 'NoOp', config: {} } },
    ...what,
  });

const regex = (value: string) => ({ key: 'plan', value, operator: 'regex', type: 'event' });
const hogql = (key: string) => ({ key, type: 'hogql' });

/** Filters whose patterns are large, many, nested or slow to match. The first four are refused. */
const PATTERNS: (() => object[])[] = [
  () => times(60, () => regex(fresh() + '.{999}'.repeat(200))),
  () => times(700, () => regex(`${fresh()}(a|b|c){500}`)),
  () => times(40, () => regex(`${fresh()}((((a{1,9}){1,9}){1,9}){1,9}){1,9}`)),
  () => times(200, () => hogql(`event =~ '${fresh()}(x{1,30}){1,30}'`)),
  () => times(10, () => hogql(`match(properties.$current_url, '^((((.*)*)*)*)*${fresh()}$')`)),
  () => [regex(`^(a+)+(b+)+(.*.*.*.*.*.*.*.*)*${fresh()}$`)],
  () => times(5, () => hogql(`match(properties.$current_url, '(.*a){1,60}${fresh()}$')`)),
  () => times(9, () => hogql(`match(toString(properties), '(x+x+)+y${fresh()}')`)),
];

export async function patterns({ tenant, keepAsking }: Means): Promise<void> {
  await Promise.all(
    PATTERNS.map((filters, n) =>
      keepAsking(`pattern ${n + 1}`, 2, () => preview(tenant, { filters: filters() })),
    ),
  );
}

/** A filter that takes long to read: terms of which the parser tries several meanings, in nested brackets. */
function slowFilter(): object {
  const name = fresh();
  const terms = times(20, (n) => `ifNull(properties.${name}_${n}, 1) = 2`).join(' or ');
  return hogql(`${'('.repeat(8)}${terms}${')'.repeat(8)}`);
}

export async function patches({ tenant, keepAsking }: Means): Promise<void> {
  const path = `${project(tenant)}/batch_exports/${tenant.exportId}/`;
  const patch = (filters: number) => () =>
    post(tenant, 'PATCH', path, { filters: times(filters, slowFilter) });
  await Promise.all([
    // Reading so many filters takes longer than a change may take.
    keepAsking('patch that takes too long', 5, patch(40)),
    keepAsking('patch', 5, patch(5)),
  ]);
}

/** What a preview reads: columns, and a filter that few events or none pass. The first one is refused. */
const QUERIES: [columns: string, filter?: string][] = [
  ["length(repeat(concat(event, repeat('a', 990)), 800000)) as a"],
  ['length(repeat(toString(properties), 500)) as a'],
  ['repeat(toString(properties), 50) as a'],
  ['arraySum(arrayMap(x -> x * 2, range(1, 1000))) as a'],
  [
    'properties, person_properties',
    "lower(concat(toString(properties), toString(properties))) like '%z%q%z%q%'",
  ],
  ['timestamp', "match(toString(properties), '(.*a){1,40}FRESH$')"],
  ['timestamp', "length(replaceAll(toString(properties), 'a', 'bbbb')) > 10000000"],
  [
    "arrayStringConcat(arrayMap(x -> toString(x), range(1, 300)), ',') as a",
    "properties.$current_url = 'FRESH'",
  ],
];

export async function queries({ tenant, keepAsking }: Means): Promise<void> {
  const place = project(tenant);
  const deep = () => 40_000 + Math.floor(Math.random() * 9_000);
  await Promise.all([
    ...QUERIES.map(([columns, filter = "event <> 'FRESH'"], n) =>
      keepAsking(`query ${n + 1}`, 2, () =>
        preview(tenant, {
          ...{ hogql_query: `select event, ${columns} from events`, limit: 100 },
          filters: [hogql(filter.replace('FRESH', fresh()))],
        }),
      ),
    ),
    keepAsking('events', 4, () => get(tenant, `${place}/events/?limit=50000`)),
    keepAsking('events with persons', 2, () =>
      get(tenant, `${place}/events/?limit=50000&include_person=true&orderBy=["timestamp"]&after=2020-01-01`),
    ),
    keepAsking('deep persons', 4, () => get(tenant, `${place}/persons/?limit=100&offset=${deep()}`)),
    keepAsking('searched persons', 4, () =>
      get(tenant, `${place}/persons/?search=user-&limit=100&offset=${deep()}`),
    ),
  ]);
}
