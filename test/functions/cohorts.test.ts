// Functions whose filters name cohorts: what is stored, what is refused, and what follows from changes.
import { beforeAll, describe, expect, test } from '@jest/globals';
import { stepsOf, versionsOf } from '../../actions/reads/steps-of.ts';
import { cohortsToInline } from '../../cohorts/reads/reached-cohorts.ts';
import { transaction } from '../../db/pool.ts';
import { filterOf, Moment } from '../../functions/filter.ts';
import { filterGlobalsOf } from '../../functions/rules/globals.ts';
import { recompileFunctions } from '../../functions/runs/recompile.ts';
import { holdCohorts } from '../../functions/surroundings.ts';
import { storeCohort } from '../flags/support.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();
let anna: Tenant;
let bob: Tenant;
beforeAll(async () => {
  anna = await api.createTenant('Anna');
  bob = await api.createTenant('Bob');
});

const url = (path: string) => `/api/projects/${anna.projectId}/${path}`;
const send = async (method: 'GET' | 'POST' | 'PATCH', path: string, body?: object) => {
  const answer = await api.request(anna, method, url(path), body);
  return { status: answer.statusCode, body: answer.json() };
};
const recompile = () =>
  recompileFunctions(
    {
      ...{ pool: api.pool, compiler: api.functionCompiler, keyring: api.keyring },
      ...{ actions: { steps: stepsOf, versions: versionsOf }, cohorts: cohortsToInline },
      logger: { warn: () => undefined, info: () => undefined },
    },
    { signal: new AbortController().signal, beat: () => undefined },
  );

const tree = (...values: object[]) => ({ properties: { type: 'OR', values: [{ type: 'AND', values }] } });
const plan = (value: string) => ({ key: 'plan', type: 'person', operator: 'exact', value });
const cohort = async (...values: object[]): Promise<number> => {
  const { status, body } = await send('POST', 'cohorts/', { name: 'payers', filters: tree(...values) });
  expect([status, body]).toEqual([201, expect.anything()]);
  return body.id;
};
const asks = (value: unknown, operator = 'in') => ({ key: 'id', type: 'cohort', operator, value });
const save = (filters: object, more: object = {}) =>
  send('POST', 'hog_functions/', { name: 'To CRM', hog: 'return 1', enabled: true, filters, ...more });

/** Whether the stored filters of a function match an event of a person with these properties. */
async function runsFor(id: string, properties: Record<string, unknown>): Promise<boolean> {
  const { body } = await send('GET', `hog_functions/${id}/`);
  const moment = new Moment();
  moment.set(Date.now(), () => 1);
  const event = {
    event: 'paid',
    uuid: '',
    distinct_id: 'ada',
    properties: {},
    timestamp: '',
    elements_chain: '',
  };
  const globals = filterGlobalsOf(event, { id: '', properties }, []);
  return [body.filters, ...(body.mappings ?? []).map((one: { filters: object }) => one.filters)].every(
    ({ bytecode }) => {
      const { matched, error } = filterOf(bytecode, moment)(globals);
      expect(error).toBeUndefined();
      return matched;
    },
  );
}

test('a test run looks at cohorts too', async () => {
  const filters = { properties: [asks(await cohort(plan('pro')))] };
  for (const [value, status] of [
    ['PRO', 'success'],
    ['free', 'skipped'],
  ]) {
    const { body } = await send('POST', 'hog_functions/new/invocations/', {
      configuration: { hog: 'return 1', filters },
      globals: {
        event: { event: 'paid', distinct_id: 'ada' },
        person: { id: 'p', properties: { plan: value } },
      },
    });
    expect([body.status, body.errors]).toEqual([status, []]);
  }
});

test('a function runs for the members of a cohort, or for all others', async () => {
  const id = await cohort(plan('pro'));
  const members = await save({ properties: [asks(id)] });
  const others = await save({
    events: [{ id: 'paid', type: 'events', properties: [asks(String(id), 'not_in')] }],
  });
  const mapped = await save({}, { mappings: [{ name: 'm', filters: { properties: [asks([id])] } }] });
  expect([members.status, others.status, mapped.status]).toEqual([201, 201, 201]);
  // Flags do not look at the case of a text, filters do.
  for (const [properties, expected] of [
    [{ plan: 'pro' }, true],
    [{ plan: 'Pro' }, true],
    [{ plan: 'free' }, false],
    [{}, false],
  ] as const) {
    expect([properties, await runsFor(members.body.id, properties)]).toEqual([properties, expected]);
    expect([properties, await runsFor(others.body.id, properties)]).toEqual([properties, !expected]);
    expect([properties, await runsFor(mapped.body.id, properties)]).toEqual([properties, expected]);
  }
});

test('a change of a cohort, also of one inside of another, changes the function', async () => {
  const inner = await cohort(plan('pro'));
  const outer = await cohort({ ...asks(inner), negation: true });
  const { body } = await save({ properties: [asks(outer)] });
  expect(await recompile()).toBe(0);
  expect(await runsFor(body.id, { plan: 'free' })).toBe(true);
  await send('PATCH', `cohorts/${inner}/`, { filters: tree(plan('free')) });
  expect(await recompile()).toBe(1);
  expect(await runsFor(body.id, { plan: 'free' })).toBe(false);
  expect(await runsFor(body.id, { plan: 'pro' })).toBe(true);
  const { body: after } = await send('GET', `hog_functions/${body.id}/`);
  expect(after).toMatchObject({ version: 1, updated_at: body.updated_at });
  expect(await recompile()).toBe(0);
  await api.pool.query('update cohorts set filters = $2, version = version + 1 where id = $1', [
    inner,
    tree({ key: 'x', type: 'behavioral', value: 'y' }),
  ]);
  expect(await recompile()).toBe(1);
  expect(await recompile()).toBe(0);
  // The last version goes on.
  expect(await runsFor(body.id, { plan: 'pro' })).toBe(true);
  const { rows } = await api.pool.query('select compile_error from functions where id = $1', [body.id]);
  expect(rows[0].compile_error).toMatch(/type "behavioral"/);
});

test('the conditions of test accounts may name cohorts', async () => {
  const team = await cohort({ key: 'email', type: 'person', operator: 'icontains', value: '@acme.com' });
  await api.pool.query('update projects set test_account_filters = $2 where id = $1', [
    anna.projectId,
    JSON.stringify([asks(team, 'not_in')]),
  ]);
  const { status, body } = await save({ filter_test_accounts: true });
  expect(status).toBe(201);
  expect(await runsFor(body.id, { email: 'Ann@ACME.com' })).toBe(false);
  expect(await runsFor(body.id, { email: 'ann@shop.test' })).toBe(true);
  await send('PATCH', `cohorts/${team}/`, {
    filters: tree({ key: 'email', type: 'person', operator: 'icontains', value: '@shop.test' }),
  });
  expect(await recompile()).toBe(1);
  expect(await runsFor(body.id, { email: 'ann@shop.test' })).toBe(false);
  await api.pool.query(`update projects set test_account_filters = '[]' where id = $1`, [anna.projectId]);
  await send('PATCH', `hog_functions/${body.id}/`, { deleted: true });
});

describe('a cohort that an enabled function uses', () => {
  test('cannot be deleted, and says who uses it; one that is deleted while a function is saved is refused', async () => {
    const id = await cohort(plan('pro'));
    const { body } = await save({ properties: [asks(id)] });
    const usedBy = async () => (await send('GET', `cohorts/${id}/used_by/`)).body.functions;
    expect(await usedBy()).toEqual([{ id: body.id, name: 'To CRM', enabled: true }]);
    const refused = await send('PATCH', `cohorts/${id}/`, { deleted: true });
    expect([refused.status, refused.body.detail]).toEqual([
      400,
      `Cannot delete this cohort because enabled functions use it: "To CRM" (${body.id}).`,
    ]);
    await send('PATCH', `hog_functions/${body.id}/`, { enabled: false });
    expect(await usedBy()).toEqual([{ id: body.id, name: 'To CRM', enabled: false }]);
    expect((await send('PATCH', `cohorts/${id}/`, { deleted: true })).status).toBe(200);
    const enabled = await send('PATCH', `hog_functions/${body.id}/`, { enabled: true });
    expect([enabled.status, enabled.body.detail]).toEqual([
      400,
      expect.stringContaining(`Cohort ${id} does not exist in this project, or was deleted`),
    ]);
    const { body: later } = await save({ properties: [asks(await cohort(plan('x')))] });
    const [origin] = (await api.pool.query('select compiled_from from functions where id = $1', [later.id]))
      .rows;
    const gone = origin.compiled_from.cohorts[0].id;
    await api.pool.query('update cohorts set deleted = true where id = $1', [gone]);
    const held = transaction(api.pool, (client) =>
      holdCohorts(client, { cohorts: cohortsToInline }, anna.projectId, origin.compiled_from),
    );
    await expect(held).rejects.toThrow(`The cohort ${gone} was deleted meanwhile.`);
    // Another number that is the version of a cohort is not its id.
    const other = await cohort(plan('x'));
    expect((await send('GET', `cohorts/${other}/used_by/`)).body.functions).toEqual([]);
  });
});

describe('refused with a sentence', () => {
  test('are cohorts of others, and functions that know no person', async () => {
    const theirs = await storeCohort(api.pool, bob.projectId, {
      name: 'theirs',
      properties: tree(plan('x')).properties,
    });
    const mine = await cohort(plan('pro'));
    for (const [id, more, message] of [
      [theirs, {}, `Cohort ${theirs} does not exist in this project, or was deleted`],
      [2_147_483_648, {}, 'Cohort 2147483648 does not exist in this project, or was deleted'],
      [
        mine,
        { type: 'transformation', hog: 'return event' },
        'Transformations run before an event has a person',
      ],
      [
        mine,
        { type: 'site_destination', hog: 'return {}' },
        'Functions that run in browsers do not know the person',
      ],
    ] as const) {
      const { status, body } = await save({ properties: [asks(id)] }, more);
      expect([status, body.attr, body.detail]).toEqual([400, 'filters', expect.stringContaining(message)]);
    }
    const disabled = await save({ properties: [asks(theirs)] }, { enabled: false });
    expect([disabled.status, disabled.body.filters.bytecode_error]).toEqual([
      201,
      expect.stringContaining('does not exist'),
    ]);
  });
});
