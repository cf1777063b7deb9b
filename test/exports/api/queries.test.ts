import { beforeAll, describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../../support/api.ts';

const api = apiForFile();
let anna: Tenant;
let url: string;
beforeAll(async () => {
  anna = await api.createTenant('Anna');
  url = `/api/projects/${anna.projectId}/batch_exports/`;
});

const nowhere = { type: 'NoOp', config: {} };
const database = {
  type: 'Postgres',
  config: { user: 'u', password: 'p', host: 'db.example.com', database: 'd' },
};
const good = { name: 'Lake', interval: 'hour', destination: nowhere };

async function ask(
  method: string,
  path: string,
  body?: object,
  tenant = anna,
  // biome-ignore lint/suspicious/noExplicitAny: whatever the API answers
): Promise<{ status: number; body: any }> {
  const answer = await api.request(tenant, method, path, body);
  return { status: answer.statusCode, body: answer.json() };
}
const count = async () => (await ask('GET', url)).body.count;

describe('a query as the source of an export', () => {
  test.each([
    ['events', "select uuid, properties.plan as plan from events where event = 'paid'"],
    ['persons', "select distinct_id, properties.email as email from persons where properties.plan = 'pro'"],
    ['sessions', 'select session_id, $pageview_count as views from sessions where duration > 60'],
  ])('decides the model, if none is given: %s', async (model, hogql_query) => {
    const { status, body } = await ask('POST', url, { ...good, hogql_query });
    expect([status, body.model, body.hogql_query]).toEqual([201, model, hogql_query]);
    expect(body.schema).toEqual({
      fields: [
        { expression: expect.any(String), alias: expect.any(String) },
        { expression: expect.any(String), alias: expect.any(String) },
      ],
      values: {},
      hogql_query: expect.stringMatching(new RegExp(`^SELECT .* FROM ${model} WHERE `)),
    });
    const shown = await ask('GET', `${url}${body.id}/`);
    expect(shown.body).toEqual({ ...body, latest_runs: [] });
    const preview = await ask('POST', `${url}preview/`, { ...good, hogql_query });
    expect([preview.status, preview.body.rows]).toEqual([200, []]);
    expect(preview.body.columns.map((one: { name: string }) => one.name)).toEqual(
      body.schema.fields.map((one: { alias: string }) => one.alias),
    );
  });

  test('stays with the model of its export', async () => {
    const { body } = await ask('POST', url, { ...good, hogql_query: 'select id from persons' });
    const path = `${url}${body.id}/`;
    const changed = await ask('PATCH', path, { hogql_query: 'select id from persons where not is_deleted' });
    expect([changed.status, changed.body.model]).toEqual([200, 'persons']);
    for (const hogql_query of ['select uuid from events', 'select session_id from sessions']) {
      const refused = await ask('PATCH', path, { hogql_query });
      expect([refused.status, refused.body.attr, refused.body.detail]).toEqual([
        ...[400, 'hogql_query', 'Query must only SELECT FROM persons'],
      ]);
    }
    const refused = await ask('POST', url, {
      ...good,
      model: 'sessions',
      hogql_query: 'select id from persons',
    });
    expect([refused.status, refused.body.detail]).toEqual([400, 'Query must only SELECT FROM sessions']);
    expect((await ask('GET', path)).body).toMatchObject({
      hogql_query: 'select id from persons where not is_deleted',
    });
    const { body: default_ } = await ask('PATCH', path, { hogql_query: null });
    expect([default_.hogql_query, default_.schema, default_.model]).toEqual([null, null, 'persons']);
  });

  test('takes no names of events and no filters beside it, if it is not about events', async () => {
    const hogql_query = 'select id from persons';
    const filters = [{ type: 'event', key: 'a', operator: 'exact', value: 'b' }];
    expect((await ask('POST', url, { ...good, hogql_query, filters })).body).toMatchObject({
      attr: 'filters',
      detail: "'filters' is only supported for 'events' not 'persons' model",
    });
    const destination = { type: 'NoOp', config: { include_events: ['a'] } };
    expect((await ask('POST', url, { ...good, hogql_query, destination })).body).toMatchObject({
      attr: 'destination__config__include_events',
    });
  });

  test.each<[string, string, RegExp]>([
    ['no key', 'select event from events', /need the columns team_id and uuid, or uuid/],
    ['no key of persons', 'select id from persons', /need the columns team_id and distinct_id/],
    [
      'no versions of persons',
      'select team_id, distinct_id from persons',
      /need the columns person_distinct_id_version and person_version, which tell/,
    ],
    ['no end of sessions', 'select team_id, session_id from sessions', /need the columns end_timestamp/],
    ['a column of the system', 'select uuid, event as ctid from events', /no column that is called 'ctid'/],
    [
      'a long name',
      `select uuid, event as ${'x'.repeat(64)} from events`,
      /at most 63 bytes in the name of a column/,
    ],
  ])('gives a table what it needs: not with %s', async (_name, hogql_query, says) => {
    const before = await count();
    const refused = await ask('POST', url, { ...good, destination: database, hogql_query });
    expect([refused.status, refused.body.attr, refused.body.detail]).toEqual([
      ...[400, 'hogql_query', expect.stringMatching(says)],
    ]);
    expect(await count()).toBe(before);
    // Others take any columns.
    expect((await ask('POST', url, { ...good, hogql_query })).status).toBe(201);
  });
});

describe('a hostile query', () => {
  const nested = (depth: number) => `${'('.repeat(depth)}event${')'.repeat(depth)}`;
  const negated = (depth: number) => `${'not '.repeat(depth)}true`;
  /** Asks as a tenant of their own, because reading such queries uses up what a project may have read. */
  const refused = async (hogql_query: string) => {
    const tenant = await api.createTenant('Mallory');
    const list = `/api/projects/${tenant.projectId}/batch_exports/`;
    const { status, body } = await ask('POST', list, { ...good, hogql_query }, tenant);
    // A project may have its queries read for so long and no longer.
    if (status !== 429) {
      expect([status, body]).toEqual([400, expect.objectContaining({ attr: 'hogql_query' })]);
    }
    expect((await ask('GET', list, undefined, tenant)).body.count).toBe(0);
    return [status, body.detail];
  };

  test.each<[string, () => string]>([
    [
      'a megabyte of conditions',
      () => `select uuid from events where ${"event = 'aaaaaaa' or ".repeat(40_000)} true`,
    ],
    ['a megabyte of text', () => `select '${'x'.repeat(1_000_000)}' as x from events`],
    ['a thousand brackets', () => `select ${nested(1_000)} as x from events`],
    ['a thousand negations', () => `select uuid from events where ${negated(1_000)}`],
    [
      'thousands of columns',
      () => `select ${Array.from({ length: 6_000 }, (_, n) => `${n} as c${n}`)} from events`,
    ],
  ])('is refused: %s', async (_name, text) => {
    const [status, detail] = await refused(text());
    expect([[400, 429].includes(status), String(detail).length < 500]).toEqual([true, true]);
  });

  test.each([
    "select pg_read_file('/etc/passwd') as x from events",
    'select uuid from events where pg_sleep(1) is null',
    "select uuid from events where set_config('sluice.project', '2', true) = '2'",
    "select dblink('host=x', 'select 1') as x from events",
    'select uuid from projects',
    'select uuid from events_default',
    'select uuid from pg_catalog.pg_class',
    "select uuid from events where '1'::regclass = 1",
    'select uuid from events; delete from events',
    'select uuid from events where event = $1',
  ])('can do nothing else: %s', async (hogql_query) => {
    expect(await refused(hogql_query)).toEqual([400, expect.any(String)]);
  });

  test('cannot name columns twice, nor change what the interval means', async () => {
    expect(await refused('select uuid, event as uuid from events')).toEqual([
      ...[400, "Invalid HogQL query: two columns are called 'uuid'"],
    ]);
    const hogql_query =
      "select uuid, 'x' as inserted_at, 5 as person_id, 'y' as project_id from events where true or 1 = 1";
    const { status, body } = await ask('POST', `${url}preview/`, { ...good, hogql_query });
    expect([status, body.detail, body.rows]).toEqual([200, undefined, []]);
  });
});
