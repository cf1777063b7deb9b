// What an export that is saved with a cohort is asked, and what it keeps others from.
import { beforeAll, expect, test } from '@jest/globals';
import { storeCohort } from '../flags/support.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();
let anna: Tenant;
let bob: Tenant;
let exports: string;
beforeAll(async () => {
  anna = await api.createTenant('Anna');
  bob = await api.createTenant('Bob');
  exports = `/api/projects/${anna.projectId}/batch_exports/`;
});

const good = { name: 'Lake', interval: 'hour', destination: { type: 'NoOp', config: {} } };
const filtered = (value: unknown, operator = 'in') => ({
  ...good,
  filters: [{ type: 'cohort', key: 'id', operator, value }],
});
const save = async (body: object) => {
  const answer = await api.request(anna, 'POST', exports, body);
  return { status: answer.statusCode, body: answer.json() };
};
const stored = (tenant: Tenant, name: string) =>
  storeCohort(api.pool, tenant.projectId, { name, isStatic: true });

test('cohorts that are not there are refused', async () => {
  const theirs = await stored(bob, 'theirs');
  const gone = await stored(anna, 'gone');
  await api.pool.query('update cohorts set deleted = true where id = $1', [gone]);
  const mine = await stored(anna, 'mine');
  for (const id of [theirs, gone, 2_147_483_648]) {
    expect(await save(filtered([mine, id]))).toMatchObject({
      status: 400,
      body: {
        ...{ code: 'cohort_does_not_exist', attr: 'filters' },
        detail: `There is no cohort ${id} in this project, or it was deleted.`,
      },
    });
  }
  for (const hogql_query of [
    `select event, person_id in cohort ${theirs} as theirs from events`,
    `select event from events where person_id not in cohort ${theirs}`,
    `select distinct_id from persons where id in cohort ${theirs}`,
  ]) {
    expect(await save({ ...good, hogql_query })).toMatchObject({
      status: 400,
      body: { code: 'cohort_does_not_exist', attr: 'hogql_query' },
    });
  }
});

test('a cohort that an export uses cannot be deleted', async () => {
  const [one, two, three] = [
    await stored(anna, 'one'),
    await stored(anna, 'two'),
    await stored(anna, 'three'),
  ];
  const url = (id: number) => `/api/projects/${anna.projectId}/cohorts/${id}/`;
  const hogql_query = `select event, person_id in cohort ${three} as listed from events`;
  const { status, body } = await save({ ...filtered([String(one), two], 'not_in'), hogql_query });
  expect(status).toBe(201);
  for (const id of [one, two, three]) {
    expect((await api.request(anna, 'GET', `${url(id)}used_by/`)).json()).toEqual({
      ...{ feature_flags: [], cohorts: [] },
      functions: [],
      batch_exports: [{ id: body.id, name: 'Lake', paused: false }],
    });
    const refused = await api.request(anna, 'PATCH', url(id), { deleted: true });
    expect([refused.statusCode, refused.json().detail]).toEqual([
      400,
      `Cannot delete this cohort because batch exports use it: "Lake" (${body.id}).`,
    ]);
  }
  const preview = await api.request(anna, 'POST', `${exports}${body.id}/preview/`, {});
  expect(preview.statusCode).toBe(200);
  const { theirs } = { theirs: await stored(bob, 'more') };
  const changed = await api.request(anna, 'PATCH', `${exports}${body.id}/`, filtered(theirs));
  expect(changed.json()).toMatchObject({ code: 'cohort_does_not_exist' });
  await api.request(anna, 'PATCH', `${exports}${body.id}/`, { filters: [], hogql_query: null });
  for (const id of [one, two, three]) {
    expect((await api.request(anna, 'PATCH', url(id), { deleted: true })).statusCode).toBe(200);
  }
});
