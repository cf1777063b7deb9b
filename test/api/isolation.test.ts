import { beforeAll, describe, expect, test } from '@jest/globals';
import { createIngest } from '../../capture/ingest.ts';
import { createPool } from '../../db/pool.ts';
import { capturedEvent } from '../capture/support.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { insertExportOf } from '../support/batch-export-rows.ts';
import { eventually } from '../support/eventually.ts';
import { insertFunctionOf } from '../support/function-rows.ts';
import { queriesOf } from '../support/query-log.ts';
import { refusals } from '../support/refusals.ts';
import { fill, type Ids, idsOf, managed } from '../support/routes.ts';
import { insertEvents, insertGroup, insertPerson } from '../support/rows.ts';

// It asks for much that is not there.
const api = apiForFile({ SLUICE_REFUSALS_PER_MINUTE: '0' });
const HOUR = 3_600_000;
/** What nobody has: what is asked of it is what must be answered for a stranger's. */
const MISSING: Ids = {
  organization_id: '01900000-0000-7000-8000-000000000000',
  project_id: 999_999_999,
  user_uuid: '01900000-0000-7000-8000-000000000000',
  user_id: '01900000-0000-7000-8000-000000000000',
  key_id: '0000000000000000000000',
  id: '01900000-0000-7000-8000-000000000001',
  run_id: '01900000-0000-7000-8000-000000000002',
  backfill_id: '01900000-0000-7000-8000-000000000003',
  version: '718294',
  invocation_id: '01900000-0000-7000-8000-000000000004',
  replay_id: '01900000-0000-7000-8000-000000000005',
  rollout_id: '01900000-0000-7000-8000-000000000006',
  query_id: '01900000-0000-7000-8000-000000000007',
  key: 'another-flag',
};
let anna: Tenant;
let ben: Tenant;
let before: string;

/** Everything that belongs to Ben, as text. */
async function stateOfBen(): Promise<string> {
  const tables = [
    ['organizations', 'id = $1', ben.organizationId],
    ['organization_memberships', 'organization_id = $1', ben.organizationId],
    ['projects', 'organization_id = $1', ben.organizationId],
    ['users', 'id = $1', ben.userId],
    ['personal_api_keys', 'user_id = $1', ben.userId],
    ['project_deletions', 'organization_id = $1', ben.organizationId],
    ['activity_log', 'organization_id = $1', ben.organizationId],
    ['events', 'project_id = $1', ben.projectId],
    ['persons', 'project_id = $1', ben.projectId],
    ['background_queries', 'project_id = $1', ben.projectId],
    ['person_distinct_ids', 'project_id = $1', ben.projectId],
    ['deleted_distinct_ids', 'project_id = $1', ben.projectId],
    ['groups', 'project_id = $1', ben.projectId],
    ['group_types', 'project_id = $1', ben.projectId],
    ['batch_exports', 'project_id = $1', ben.projectId],
    ['batch_export_runs', 'project_id = $1', ben.projectId],
    ['batch_export_backfills', 'project_id = $1', ben.projectId],
    ['batch_export_logs', 'project_id = $1', ben.projectId],
    ['functions', 'project_id = $1', ben.projectId],
    ['function_queue', 'project_id = $1', ben.projectId],
    ['function_invocations', 'project_id = $1', ben.projectId],
    ['function_replays', 'project_id = $1', ben.projectId],
    ['feature_flags', 'project_id = $1', ben.projectId],
    ['early_access_features', 'project_id = $1', ben.projectId],
    ['surveys', 'project_id = $1', ben.projectId],
    ['annotations', 'project_id = $1', ben.projectId],
  ] as const;
  const texts: string[] = [];
  for (const [table, condition, value] of tables) {
    const { rows } = await api.pool.query(`select * from ${table} where ${condition} order by 1`, [value]);
    texts.push(`${table}: ${JSON.stringify(rows)}`);
  }
  return texts.join('\n');
}

/** Status, headers, body and queries, with the ids and moments that differ by nature taken out. */
async function observe(method: string, url: string, payload: unknown, ids: Ids, key: Tenant | string = anna) {
  const seen = await queriesOf(() => api.request(key, method, url, payload));
  const { result } = seen;
  // The listener asks now and then whether it is still heard.
  const queries = seen.queries.filter((query) => !query.includes('pg_notify'));
  let body = result.body;
  // Long ones first: a short one may be a part of them.
  const byLength = Object.entries(ids).sort((a, b) => String(b[1]).length - String(a[1]).length);
  for (const [name, id] of byLength) body = body.replaceAll(String(id), `<${name}>`);
  const { 'x-request-id': _id, date: _date, 'content-length': _length, ...headers } = result.headers;
  return { status: result.statusCode, body, headers, queries };
}

/** A feature to choose with its flag, and a survey. */
async function insertOffersOf(tenant: Tenant): Promise<void> {
  const { id } = idsOf(tenant);
  await api.pool.query(
    `with flag as (
       insert into feature_flags (project_id, key, filters) values ($1, 'early', '{"groups":[]}') returning id)
     insert into early_access_features (project_id, id, flag_id, name, stage) select $1, $2, id, 'Early', 'beta' from flag`,
    [tenant.projectId, id],
  );
  await api.pool.query(
    "insert into surveys (project_id, id, name, type) values ($1, $2, 'Liking', 'popover')",
    [tenant.projectId, id],
  );
}

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  ben = await api.createTenant('Ben');
  // The first use of a key is written down; later ones are not, and queries can be compared.
  await api.request(anna, 'GET', '/api/users/@me/');
  await eventually(async () => {
    const { rows } = await api.pool.query('select last_used_at from personal_api_keys where id = $1', [
      anna.keyId,
    ]);
    return rows[0].last_used_at !== null;
  });
  const store = createPool({ url: api.config.DATABASE_URL as string, size: 2, name: 'ingest' });
  const ingest = createIngest({ pool: store });
  const properties = { $process_person_profile: false };
  const event = capturedEvent({ uuid: idsOf(ben).id, properties });
  await ingest.submit({ projectId: ben.projectId, events: [event] });
  await ingest.close();
  await store.end();
  await insertPerson(api.pool, ben.projectId, { id: idsOf(ben).id, distinct_ids: ['user-1'] });
  // In the last finished hour and in this one, so that a preview finds rows also when an hour ends meanwhile.
  const hour = Math.floor(Date.now() / HOUR) * HOUR;
  const times = [hour - HOUR / 2, hour].map((time) => new Date(time).toISOString());
  await insertEvents(
    api.pool,
    times.map((timestamp) => ({
      ...{ project_id: ben.projectId, timestamp, session_id: idsOf(ben).id, person_id: idsOf(ben).id },
      properties: { plan: 'gold' },
    })),
  );
  await api.pool.query('update persons set changed_at = $2 where project_id = $1', [ben.projectId, times[0]]);
  await insertGroup(api.pool, ben.projectId, { id: idsOf(ben).id, group_type_index: 0, group_key: 'acme' });
  await insertExportOf(api.pool, ben);
  await api.pool.query(
    `insert into background_queries (project_id, id, state, finished_at, expires_at)
     values ($1, $2, 'completed', now(), now() + interval '1 day')`,
    [ben.projectId, idsOf(ben).query_id],
  );
  // So that only the run or the backfill of a path is somebody else's.
  await insertExportOf(api.pool, anna);
  for (const tenant of [ben, anna]) {
    await insertFunctionOf(api.pool, tenant);
    await insertOffersOf(tenant);
  }
  before = await stateOfBen();
});

describe("another tenant's ids", () => {
  test('in every path are like ids of nothing: status, body, headers, queries', async () => {
    const own = idsOf(anna);
    const foreign = idsOf(ben);
    let compared = 0;
    for (const one of managed(api.app)) {
      const parameters = [...one.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as keyof Ids);
      // Each parameter alone, the others being the caller's own, and all together.
      const choices = [...parameters.map((name) => [name]), ...(parameters.length > 1 ? [parameters] : [])];
      for (const chosen of choices) {
        for (const payload of one.hasBody
          ? [{}, { name: 'taken over', level: 15, hash: 'x', label: 'x' }]
          : [undefined]) {
          const take = (from: Ids) => ({
            ...own,
            ...Object.fromEntries(chosen.map((name) => [name, from[name]])),
          });
          const theirs = await observe(one.method, fill(one.path, take(foreign)), payload, foreign);
          const nobodys = await observe(one.method, fill(one.path, take(MISSING)), payload, MISSING);
          expect([one.method, one.path, chosen, theirs]).toEqual([one.method, one.path, chosen, nobodys]);
          // An id of nothing tries or checks a function that is not stored, and the body has none.
          const isTrial =
            one.method === 'POST' && /\/(invocations|check)\/$/.test(one.path) && chosen.join() === 'id';
          // The projects of an organization that have a flag with a key are listed, and none may have one.
          const isList = one.path.endsWith('/feature_flags/{key}/') && chosen.join() === 'key';
          const expected = isTrial ? 400 : isList ? 200 : 404;
          expect([one.method, one.path, theirs.status]).toEqual([one.method, one.path, expected]);
          compared += 1;
        }
      }
    }
    expect(compared).toBeGreaterThan(20);
    expect(await stateOfBen()).toBe(before);
  });

  test.each([
    [
      'scoped_teams of a new key',
      'POST',
      '/api/personal_api_keys/',
      (ids: Ids) => ({ label: 'x', scopes: ['*'], scoped_teams: [ids.project_id] }),
    ],
    [
      'scoped_organizations of a new key',
      'POST',
      '/api/personal_api_keys/',
      (ids: Ids) => ({ label: 'x', scopes: ['*'], scoped_organizations: [ids.organization_id] }),
    ],
    [
      'scoped_teams of a key',
      'PATCH',
      '/api/personal_api_keys/@current/',
      (ids: Ids) => ({ scoped_teams: [ids.project_id] }),
    ],
    [
      'scoped_organizations of a key',
      'PATCH',
      '/api/personal_api_keys/@current/',
      (ids: Ids) => ({ scoped_organizations: [ids.organization_id] }),
    ],
    ['set_current_team', 'PATCH', '/api/users/@me/', (ids: Ids) => ({ set_current_team: ids.project_id })],
    [
      'set_current_organization',
      'PATCH',
      '/api/users/@me/',
      (ids: Ids) => ({ set_current_organization: ids.organization_id }),
    ],
    [
      'projectId of the wizard',
      'POST',
      '/api/organizations/@current/authenticate_wizard/',
      (ids: Ids) => ({ hash: 'x', projectId: ids.project_id }),
    ],
    [
      'a source of the rollback',
      'POST',
      '/api/organizations/@current/environments_rollback/',
      (ids: Ids) => ({ [ids.project_id]: 1 }),
    ],
    [
      'a target of the rollback',
      'POST',
      '/api/organizations/@current/environments_rollback/',
      (ids: Ids) => ({ '999999998': ids.project_id }),
    ],
    [
      'team_id of a new batch export',
      'POST',
      '/api/organizations/@current/batch_exports/',
      (ids: Ids) => ({
        ...{ name: 'x', interval: 'hour', destination: { type: 'NoOp', config: {} } },
        team_id: ids.project_id,
      }),
    ],
    [
      'team_id of a preview',
      'POST',
      '/api/organizations/@current/batch_exports/preview/',
      (ids: Ids) => ({
        ...{ name: 'x', interval: 'hour', destination: { type: 'NoOp', config: {} } },
        team_id: ids.project_id,
      }),
    ],
  ] as const)('in a body: %s', async (_name, method, url, payload) => {
    const foreign = idsOf(ben);
    const theirs = await observe(method, url, payload(foreign), foreign);
    const nobodys = await observe(method, url, payload(MISSING), MISSING);
    const sorted = (one: typeof theirs) => ({
      ...one,
      body: one.body.replace(/\{([^{}]*)\}"/, (_m, list: string) => `{${list.split(', ').sort()}}"`),
    });
    expect(sorted(theirs)).toEqual(sorted(nobodys));
    expect(theirs.status).toBe(400);
    expect(await stateOfBen()).toBe(before);
  });

  test('in the body of a verification: the run of another export', async () => {
    const url = `/api/projects/@current/batch_exports/${idsOf(anna).id}/verify/`;
    const theirs = await observe('POST', url, { run_id: idsOf(ben).run_id }, idsOf(ben));
    const nobodys = await observe('POST', url, { run_id: MISSING.run_id }, MISSING);
    expect(theirs).toEqual(nobodys);
    expect(theirs.status).toBe(400);
  });

  test('with a key that is bound elsewhere are refused alike, whether they exist or not', async () => {
    for (const bounds of [
      { scopedTeams: [anna.projectId] },
      { scopedOrganizations: [anna.organizationId] },
    ]) {
      const { value } = await api.createKey(anna, bounds);
      await api.pool.query('update personal_api_keys set last_used_at = now() where user_id = $1', [
        anna.userId,
      ]);
      for (const one of managed(api.app).filter(({ path }) => /\{(project|organization)_id\}/.test(path))) {
        const theirs = await observe(
          one.method,
          fill(one.path, idsOf(ben)),
          one.hasBody ? {} : undefined,
          idsOf(ben),
          value,
        );
        const nobodys = await observe(
          one.method,
          fill(one.path, MISSING),
          one.hasBody ? {} : undefined,
          MISSING,
          value,
        );
        expect([one.method, one.path, theirs]).toEqual([one.method, one.path, nobodys]);
        expect([403, 404]).toContain(theirs.status);
      }
    }
    expect(await stateOfBen()).toBe(before);
  });

  test('and distinct ids in queries and bodies find nothing', async () => {
    const own = `/api/projects/${anna.projectId}`;
    const get = async (path: string) => (await api.request(anna, 'GET', `${own}/${path}`)).json();
    expect(await get('persons/?distinct_id=user-1')).toMatchObject({ count: 0, results: [] });
    expect(await get('persons/?search=user')).toMatchObject({ count: 0, results: [] });
    expect(await get(`events/?person_id=${idsOf(ben).id}`)).toEqual({ next: null, results: [] });
    expect(await get('groups/')).toMatchObject({ count: 0, results: [] });
    expect(await get('groups/find/?group_type_index=0&group_key=acme')).toEqual(refusals.notFound());
    expect(await get('groups_types/')).toEqual([]);
    for (const body of [{ ids: [idsOf(ben).id] }, { distinct_ids: ['user-1'] }]) {
      const answer = await api.request(anna, 'POST', `${own}/persons/bulk_delete/`, body);
      expect([answer.statusCode, answer.json()]).toMatchObject([
        202,
        { persons_found: 0, persons_deleted: 0 },
      ]);
    }
    for (const [path, body] of [
      ['batch_by_distinct_ids', { distinct_ids: ['user-1'] }],
      ['batch_by_uuids', { uuids: [idsOf(ben).id] }],
    ] as const) {
      const answer = await api.request(anna, 'POST', `${own}/persons/${path}/`, body);
      expect([answer.statusCode, answer.json()]).toEqual([200, { results: {} }]);
    }
    expect(await get('persons/values/?key=plan')).toEqual({ results: [], refreshing: false });
    expect(await get(`persons/?search=${idsOf(ben).id}`)).toMatchObject({ count: 0, results: [] });
    const set = '[{"key":"plan","operator":"is_not_set","type":"person"}]';
    expect(await get(`persons/?properties=${encodeURIComponent(set)}`)).toMatchObject({ results: [] });
    expect(await stateOfBen()).toBe(before);
  });

  test('and rows are in no list of what was captured, whatever it is filtered by', async () => {
    const lists = [
      ...[
        'events/',
        'events/?event=$pageview',
        'events/?distinct_id=user-1',
        'events/?orderBy=["timestamp"]',
      ],
      ...['persons/', 'persons/?search=user', 'persons/?distinct_id=user-1', 'groups/?group_type_index=0'],
    ];
    for (const list of lists) {
      const of = async (key: Tenant) => {
        const answer = await api.request(key, 'GET', `/api/projects/${key.projectId}/${list}`);
        return answer.json<{ results: unknown[] }>().results.length;
      };
      // Their owner sees them. Otherwise this would prove nothing.
      expect([list, await of(anna), (await of(ben)) > 0]).toEqual([list, 0, true]);
    }
  });

  test.each([
    ['events', {}],
    ['events, filtered', { filters: [{ key: 'plan', value: 'gold', operator: 'exact', type: 'event' }] }],
    ['events, with a query', { hogql_query: 'select uuid as uuid, properties.plan as plan from events' }],
    ['persons', { model: 'persons' }],
    ['sessions', { model: 'sessions' }],
    [
      'the result of a query',
      { interval: 'once', hogql_query: 'select e.uuid from events e cross join persons p' },
    ],
  ])(
    'and rows are in no preview of an export of %s, also with the second wall off',
    async (_what, fields) => {
      // The server's role sees all rows, so only the query itself keeps projects apart.
      const unwalled = await api.rebuild({ reader: api.pool });
      const of = async (key: Tenant, app = api.app) => {
        const payload = { name: 'x', interval: 'hour', destination: { type: 'NoOp', config: {} }, ...fields };
        const url = `/api/projects/${key.projectId}/batch_exports/preview/`;
        const headers = { authorization: `Bearer ${key.key}` };
        const answer = await app.inject({ method: 'POST', url, headers, payload });
        expect([answer.statusCode, answer.statusCode === 200 || answer.body]).toEqual([200, true]);
        return answer.json<{ rows: unknown[] }>().rows.length;
      };
      for (const app of [api.app, unwalled])
        expect([await of(anna, app), (await of(ben, app)) > 0]).toEqual([0, true]);
      await unwalled.close();
    },
  );

  test('turn up in no list and no count', async () => {
    const { body: organizations } = await api.request(anna, 'GET', '/api/organizations/');
    const { body: projects } = await api.request(anna, 'GET', '/api/projects/');
    const { body: keys } = await api.request(anna, 'GET', '/api/personal_api_keys/');
    const { body: members } = await api.request(anna, 'GET', '/api/organizations/@current/members/');
    const { body: log } = await api.request(anna, 'GET', '/api/organizations/@current/activity_log/');
    const { body: exports } = await api.request(anna, 'GET', '/api/projects/@current/batch_exports/');
    const { body: allExports } = await api.request(anna, 'GET', '/api/organizations/@current/batch_exports/');
    const { body: me } = await api.request(anna, 'GET', '/api/users/@me/');
    for (const body of [organizations, projects, keys, members, log, me, exports, allExports]) {
      for (const secret of [
        ben.organizationId,
        ben.projectToken,
        ben.email,
        ben.userUuid,
        ben.keyId,
        idsOf(ben).id,
      ]) {
        expect(body).not.toContain(secret);
      }
    }
    expect(JSON.parse(organizations).count).toBe(1);
    expect(JSON.parse(projects).count).toBe(1);
    expect(JSON.parse(exports).count).toBe(1);
    expect(JSON.parse(allExports).count).toBe(1);
  });

  test('a user of both sees each with the level held there', async () => {
    const both = await api.createMember(anna, 'Both', 1);
    const list = (await api.request(both, 'GET', '/api/organizations/')).json();
    expect(
      list.results
        .map((one: { id: string; membership_level: number }) => [one.id, one.membership_level])
        .sort(),
    ).toEqual(
      [
        [anna.organizationId, 1],
        [both.organizationId, 15],
      ].sort(),
    );
    const url = `/api/organizations/${both.organizationId}/members/${anna.userUuid}/`;
    expect((await api.request(both, 'GET', url)).statusCode).toBe(404);
  });
});
